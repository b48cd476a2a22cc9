"""A sign of life on standard error for what can take two seconds; nothing in a pipe, nothing with `--quiet`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Protocol

from secondtake.cli.render.escape import visible_line


class Speaking(Protocol):
    """Whether prose is wanted at all."""

    @property
    def quiet(self) -> bool: ...


@contextmanager
def working(surface: Speaking, what: str) -> Iterator[None]:
    """Show `what` with a moving sign while the body runs."""
    if surface.quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True, highlight=False).status(Text(visible_line(what))):
        yield


@contextmanager
def until_told(surface: Speaking, what: str) -> Iterator[Callable[[], None]]:
    """Show `what` until the function that is given is called, at the latest to the end of the body. It may be called again."""
    with ExitStack() as shown:
        shown.enter_context(working(surface, what))
        yield shown.close
