"""Property tests are the same on every machine, and do not fail because one is busy."""

from hypothesis import settings

settings.register_profile("cassettes", deadline=None, derandomize=True)
settings.load_profile("cassettes")
