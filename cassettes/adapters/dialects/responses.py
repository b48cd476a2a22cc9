class Assembly:
    def __init__(self, *a): pass
def read_request(*a, **k): raise NotImplementedError
read_count = read_request
Invoked = Assembly
