"""Reading a script."""

from __future__ import annotations

from pathlib import Path

import pytest

from secondtake.cassettes.errors import BadInput
from secondtake.harness.provider import CutOff, ErrorEvent, Failure, HowCut, Reply, Scene, Script, Stop, ToolCall, read_script

WHOLE = """
[[scene]]
model = "good-*"
task = "fix"
served = "good-2"
delay_ms = 5

  [[scene.turn]]
  text = "look"
  pieces = 3
  first = [{ status = 429, retry_after_s = 2 }]
    [[scene.turn.tool]]
    name = "run"
    arguments = { command = "ls", deep = { n = [1, 2] } }
    [[scene.turn.tool]]
    name = "stop"

  [[scene.turn]]
  text = "cut"
  cut_after = 4
  cut = "reset"

  [[scene.turn]]
  text = "broken"
  error_after = 2
  error = { status = 529, message = "busy", kind = "overloaded_error" }

  [[scene.turn]]
  failure = { status = 500 }

  [[scene.turn]]
  text = "end"
  stop = "length"

[[scene]]
"""


def test_every_key_of_the_file_is_read() -> None:
    """The TOML form holds all the values have."""
    turns = (
        Reply(
            "look",
            (ToolCall("run", {"command": "ls", "deep": {"n": [1, 2]}}), ToolCall("stop")),
            pieces=3,
            first=(Failure(429, retry_after_s=2),),
        ),
        Reply("cut", broken=CutOff(4, HowCut.RESET)),
        Reply("broken", broken=ErrorEvent(2, Failure(529, "busy", "overloaded_error"))),
        Failure(500),
        Reply("end", stop=Stop.LENGTH),
    )
    assert read_script(WHOLE) == Script((Scene(turns, "good-*", "fix", "good-2", 5.0), Scene(())))


def test_the_manuals_script_can_be_read() -> None:
    """docs/scripted-provider.md shows every key, and none that does not exist."""
    page = (Path(__file__).resolve().parents[3] / "docs" / "scripted-provider.md").read_text()
    (scene,) = read_script(page.split("```toml")[1].split("```")[0]).scenes
    assert [type(t) for t in scene.turns] == [Reply, Reply, Reply, Failure, Reply]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[scene", "the script is not TOML"),
        ("scenes = []", "script: unknown key `scenes`"),
        ("scene = 1", "scene: must be an array of tables"),
        ("[[scene]]\nmodel = 1", "scene 1: `model` must be a string"),
        ("[[scene]]\ndelay_ms = -1", "scene 1: `delay_ms` must be a number"),
        ("[[scene]]\nturn = [1]", "scene 1, turn 1: must be a table"),
        ('[[scene]]\nturn = [{ tool = [{ name = "" }] }]', "scene 1, turn 1, tool 1: `name` is missing"),
        ('[[scene]]\nturn = [{ tool = [{ name = "x", arguments = 1 }] }]', "tool 1: `arguments` must be a table"),
        ('[[scene]]\nturn = [{ tool = [{ name = "x", input = "y", arguments = { z = 1 } }] }]', "tool 1: `input` is the text of a call"),
        ("[[scene]]\nturn = [{ failure = { status = 200 } }]", "failure: `status` must be 400 to 599, not 200"),
        ('[[scene]]\nturn = [{ text = "x", failure = { status = 500 } }]', "`failure` stands alone"),
        ('[[scene]]\nturn = [{ stop = "never" }]', "`stop` must be one of turn, tools, length, refusal, not `never`"),
        ("[[scene]]\nturn = [{ cut_after = true }]", "`cut_after` must be a whole number"),
    ],
)
def test_a_bad_script_is_one_line_that_names_the_place(text: str, complaint: str) -> None:
    """Bad input gets one clear error line."""
    with pytest.raises(BadInput) as error:
        read_script(text)
    assert complaint in str(error.value)
    assert "\n" not in str(error.value)


def test_the_first_scene_that_fits_is_played() -> None:
    """By model pattern, then by a part of the first user text; different models get different scenes."""
    script = Script((Scene((), "a-1", "tests"), Scene((), "a-*"), Scene((), "b")))
    assert script.scene("a-1", "run the tests") is script.scenes[0]
    assert script.scene("a-1", "title") is script.scenes[1]
    assert script.scene("b", "") is script.scenes[2]
    assert script.scene("B", "") is None
    assert script.models() == ("a-1", "b")
