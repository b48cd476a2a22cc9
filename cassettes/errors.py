"""Every error this room raises.

* RecordedError            the base; carries `hint`, a line that can be run or checked
  - NotFound               no such blob, cassette or exchange
  - NameTaken              a cassette of that name exists; a closed cassette never changes
  - Locked                 another process records into that cassette
  - Corrupt                stored bytes are not what their name or checksum says; carries `faults`
  - TooNew                 written by a later version; update to read it
  - TooLarge               a length, depth, count or decompressed size is over its limit (limits.py)
  - NotStored              the disk refused (full, quota, I/O error): nothing was kept; carries `reason`
  - BadInput               a value the caller gave cannot be used
"""

from __future__ import annotations


class RecordedError(Exception):
    """Base of all errors of this room. `str(error)` is one line: what happened, to which thing."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class NotFound(RecordedError):
    """No such blob, cassette or exchange."""


class NameTaken(RecordedError):
    """A cassette of that name exists already."""


class Locked(RecordedError):
    """Another process is recording into that cassette."""


class Corrupt(RecordedError):
    """Stored bytes are not what their name or checksum says. Never reported as absence."""

    def __init__(self, message: str, *, hint: str | None = None, faults: tuple[object, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.faults = faults


class TooNew(RecordedError):
    """Written by a later version of secondtake."""


class TooLarge(RecordedError):
    """Over a limit of `limits.py`."""


class NotStored(RecordedError):
    """The disk refused. `reason` is the operating system's word for it, for example `ENOSPC`."""

    def __init__(self, message: str, *, reason: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class BadInput(RecordedError):
    """A value the caller gave cannot be used."""
