"""stub"""
from enum import StrEnum
class Framing(StrEnum):
    LINES = "lines"
def framing(fields, array=False): return Framing.LINES
class BodyReader:
    def __init__(self, *a): raise NotImplementedError
