"""One event as a value and as a line."""

from __future__ import annotations

import json

from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.event import Event, EventKind, fields, line, payload


def test_the_fixed_names_stand_in_every_line() -> None:
    """DESIGN 5: `run_id`, `fixture`, `model`, `event` are in each event, whatever it is about."""
    event = Event(EventKind.ESCAPE, 3, 5, None, None, {"kind": "tcp"})
    assert json.loads(line(event, run_id="one", fixture="bill")) == {
        "run_id": "one", "fixture": "bill", "model": None, "event": "escape",
        "sequence": 3, "offset_us": 5, "exchange": None, "kind": "tcp",
    }  # fmt: skip
    assert json.loads(line(event)) == fields(event)


def test_a_text_is_kept_under_its_hash_and_no_text_under_none() -> None:
    """Issue 3.7: payloads by hash."""
    kept: dict[str, bytes] = {}
    assert payload(kept, "") is None
    name = payload(kept, "said")
    assert name == digest_of(b"said")
    assert kept == {name: b"said"}
