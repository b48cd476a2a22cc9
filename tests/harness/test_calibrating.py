"""Which of the proposed rules stand. Whole calibrations, with real wires: tests/cli/commands/test_calibrate.py."""

from __future__ import annotations

import json

from secondtake.cassettes.declared import Declared
from secondtake.cassettes.exchange import Answer, Channel, Request
from secondtake.cassettes.memory import MemoryCassette
from secondtake.cassettes.player import Player
from secondtake.harness.calibrating import judged


def test_each_rule_is_judged_beside_those_that_stand_already() -> None:
    """Issue 4, item 3: a rule that makes two recorded requests one is left out, and the others stay."""
    cassette = MemoryCassette()
    asked = Request("POST", "https", "web.example", 443, b"/", fields=((b"content-type", b"application/json"),))
    for page in (1, 2):
        cassette.record(asked, Answer(200), sent=json.dumps({"page": page, "at": 5, "by": 6}).encode(), channel=Channel.WEB)
    one, two, three = (Declared(body=place) for place in ("at", "page", "by"))
    taken, refused = judged(cassette, Player(cassette), [one, two, three])
    assert taken == (one, three)
    assert [(rule, "exchanges 1 and 2" in why) for rule, why in refused] == [(two, True)]
