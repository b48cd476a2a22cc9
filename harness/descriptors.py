"""Room for many connections: our soft limit on open files is raised while a session runs, and the agent keeps the one it was given."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator

ENOUGH = 65_536
"""Each of the agent's connections may need two descriptors; a hard limit of a million is not made use of."""


@contextlib.contextmanager
def room() -> Iterator[int]:
    """Raise the soft limit, and put it back at the end. Yields what it was, for the agent."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH if hard == resource.RLIM_INFINITY else min(hard, ENOUGH)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        yield soft
        return
    with contextlib.suppress(OSError, ValueError):  # where it is not allowed, the session runs with what there is
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    try:
        yield soft
    finally:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
