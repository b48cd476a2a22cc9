"""Numbers as people read them."""

from __future__ import annotations


def size(size_bytes: int) -> str:
    """Return a size in the units of `ls -h`: `0 B`, `812 B`, `1.4 KiB`, `38 MiB`."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 10 else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError  # the last unit always returns


def duration(time_us: int) -> str:
    """Return a time span: `0.012 s`, `3.4 s`, `2 min 05 s`."""
    seconds = time_us / 1_000_000
    if seconds < 1:
        return f"{seconds:.3f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def count(number: int, one: str, many: str | None = None) -> str:
    """Return `1 exchange`, `2 exchanges`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
