"""Stretches of characters that keys and encodings are made of: what is worth a closer look in a text, found fast."""

from __future__ import annotations

from collections.abc import Iterator


class Stretches:
    """Runs of at least `least` bytes out of `characters`. Several times faster than a regular expression that says the same."""

    def __init__(self, characters: bytes, least: int) -> None:
        wanted = frozenset(characters)
        self._table = bytes(97 if byte in wanted else 32 for byte in range(256))
        self._least = b"a" * least

    def find(self, content: bytes) -> Iterator[tuple[int, int]]:
        """Yield start and stop of each run, in order."""
        mapped = content.translate(self._table)
        at = mapped.find(self._least)
        while at >= 0:
            stop = mapped.find(b" ", at + len(self._least))
            if stop < 0:
                stop = len(mapped)
            yield at, stop
            at = mapped.find(self._least, stop)

    def all_of(self, value: bytes) -> bool:
        """Whether `value` is one such run and nothing else."""
        return len(value) >= len(self._least) and b" " not in value.translate(self._table)
