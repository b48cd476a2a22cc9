"""Which versions of the libraries that read hostile bytes are good enough, checked before a socket is opened.

Older ones have published holes in the parsers that face the network (SECURITY C-01). The lock pins newer versions; this
check is for whoever installed the package beside something older.
"""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Callable, Mapping

from secondtake.cassettes.errors import RecordedError

LEAST: Mapping[str, tuple[int, ...]] = {
    "h2": (4, 4, 1),
    "mitmproxy": (12, 3, 1),
    "tornado": (6, 5, 2),
}
"""The oldest version of each that the proxy starts with. mitmproxy: 12.2.3 is safe; ours are the layers of 12.3."""

BELOW: Mapping[str, tuple[int, ...]] = {"mitmproxy": (12, 4)}
"""The first version of each that is not known to work: names that we extend may have moved."""


class TooOld(RecordedError):
    """A library on this machine is not one that the proxy can safely start with."""


def require(installed: Callable[[str], str] = importlib.metadata.version) -> None:
    """Return when every library is within its bounds. `installed` tells a distribution's version.

    Raises:
        TooOld: the message names the library, its version and the bound; the hint can be run.
    """
    for name, least in LEAST.items():
        version = installed(name)
        have = _release(version)
        if have < least:
            wanted = f"{name}>={_dotted(least)}"
            raise TooOld(f"{name} {version} is older than {_dotted(least)}, the first safe one", hint=f"python3 -m pip install '{wanted}'")
        below = BELOW.get(name)
        if below is not None and have >= below:
            wanted = f"{name}>={_dotted(least)},<{_dotted(below)}"
            raise TooOld(f"{name} {version} is newer than secondtake knows", hint=f"python3 -m pip install '{wanted}'")


def _release(version: str) -> tuple[int, ...]:
    """The numbers that begin a version (PEP 440), so that a pre-release sorts just before its release."""
    numbers = re.match(r"(?:\d+!)?(\d+(?:\.\d+)*)[.\-_]?(a|b|c|rc|alpha|beta|pre|preview|dev)?", version)
    if numbers is None:
        return ()
    release = tuple(int(part) for part in numbers[1].split("."))
    return (*release[:-1], release[-1] - 1, sys.maxsize) if numbers[2] else release


def _dotted(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))
