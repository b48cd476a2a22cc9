"""A calibration, shown."""

from __future__ import annotations

from pathlib import Path

from secondtake.cassettes.calibration import Varying
from secondtake.cassettes.declared import Declared
from secondtake.cli.render.calibrate import calibrated_fields, calibrated_lines
from secondtake.harness.calibrating import Calibrated
from secondtake.harness.results import Replayed

RAN = Replayed("scene", 0, 1, {}, (), (), 1)
RULE = Declared(body="metadata.nonce")
PLACE = Varying("anthropic", "POST", "api.provider.example", "/v1/\x1b[2Jm", "body", "x", "one", None, "two", True, 2, None, "why \x1b[0m")


def test_every_place_stands_with_its_three_values_and_nothing_raw() -> None:
    """Issue 4, item 3: lists every field that differs; C-17: escaped."""
    result = Calibrated("scene", (RAN, RAN), (PLACE,), (RULE,), ((RULE, "it would make 1 and 2 one"),), 3)
    shown = "\n".join(calibrated_lines(result, Path("/store")))
    assert "\x1b" not in shown
    values = ("recorded  one", "replay 1  (absent)", "replay 2  two")
    for expected in ("(anthropic): body x", *values, "no rule: why", "3 requests would still"):
        assert expected in shown
    fields = calibrated_fields(result)
    assert (fields["rules"], fields["left"]) == ([RULE.line], 3)


def test_a_scene_in_which_nothing_varies_is_said_in_a_line() -> None:
    """No list where there is nothing to list."""
    [_, line] = calibrated_lines(Calibrated("scene", (RAN, RAN), (), (), (), 0), Path("/store"))
    assert line.startswith("calibrated scene: nothing differs")
