"""The events of a replay: what was asked and answered is kept beside it for as long as it runs, then read as any recording is."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from secondtake.cassettes.events import Event, contents, events
from secondtake.cassettes.store import Store
from secondtake.cassettes.writer import Writer

NAME = "replay"


@contextmanager
def overheard(told: Callable[[Event], None] | None) -> Iterator[Writer | None]:
    """What a replay's wire is given to write to, and `told` gets every event once the body has ended without an error.

    Exchanges pass the redactor on their way, as in a recording; the folder they are kept in is gone afterwards. None for `told` None.

    Raises:
        NotStored: the temporary folder could not take it.
    """
    if told is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="secondtake-events-") as folder:
        store = Store(Path(folder))
        writer = store.create(NAME, meta={})
        try:
            yield writer
        except BaseException:
            writer.abandon()
            raise
        writer.close(meta={})
        if writer.failed is not None:
            raise writer.failed
        with store.open(NAME) as cassette:
            for event in events((cassette.exchange(seq) for seq in sorted(row.seq for row in cassette.rows)), contents(cassette)):
                told(event)
