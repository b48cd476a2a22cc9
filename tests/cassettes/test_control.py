"""Flags, settings, model lists: the recorded answer, whatever is new in this run (issue 3, item 8; AGENTS 5.8)."""

from __future__ import annotations

import json

import pytest

from secondtake.cassettes.control import TABLE, endpoint, is_transient, question
from secondtake.cassettes.exchange import Answered, Channel
from secondtake.cassettes.misses import Miss
from secondtake.cassettes.player import Options, Player, Reuse, Serve
from tests.cassettes.logins_scene import JSON, Scene, ask


def served(found: Serve | Miss) -> Serve:
    assert isinstance(found, Serve), found
    return found


def test_flags_are_answered_though_the_device_is_another() -> None:
    """AGENTS 3: the body of Claude Code's /api/eval holds device and session ids."""
    scene, flags = Scene(), ask("POST", "https://api.provider.example/api/eval/sdk-abc", JSON)
    scene.record(flags, b'{"attributes":{"deviceID":"a"}}', 200, b'{"features":{}}', JSON)
    found = served(scene.play(flags, b'{"attributes":{"deviceID":"b"}}'))
    assert (found.answered, found.channel, found.body.read(0, 99)) == (Answered.NORMALISED, Channel.CONTROL, b'{"features":{}}')
    assert found.notes == ("answered as control of exchange 1, whatever was sent",)


def test_answers_come_in_order_and_the_last_again() -> None:
    """A client that polls gets what was said then, and no storm at the end: a refusal that is asked again is not repeated."""
    scene, url = Scene(), "https://api.provider.example/api/claude_code/settings?v="
    for number, status in enumerate((503, 200, 404, 503)):
        scene.record(ask("GET", f"{url}{number}"), b"", status, b"%d" % number, JSON)
    found = [served(scene.play(ask("GET", f"{url}new-{n}"))) for n in range(6)]
    assert [one.answer.status for one in found] == [503, 200, 404, 503, 404, 404]
    assert [one.reused for one in found] == [False] * 4 + [True] * 2
    assert scene.session is not None
    assert scene.session.unplayed() == []


def test_a_recorded_404_is_replayed_and_what_was_never_asked_is_a_miss() -> None:
    """AGENTS 5.9: never an empty 200."""
    scene = Scene()
    scene.record(ask("GET", "https://models.example/api.json"), b"", 404, b"none", "Content-Type: text/plain")
    assert served(scene.play(ask("GET", "https://models.example/api.json"))).answer.status == 404
    missed = scene.play(ask("GET", "https://models.example/litellm/model_prices_and_context_window.json"))
    assert isinstance(missed, Miss)
    assert missed.channel is Channel.CONTROL


def test_another_page_or_another_model_is_another_question() -> None:
    """What the question is stands in the table; everything else is of the run."""
    scene = Scene()
    scene.record(ask("GET", "https://p.example/v1/models?limit=20&client_version=1"), b"", 200, b"first", JSON)
    assert isinstance(scene.play(ask("GET", "https://p.example/v1/models?limit=20&after_id=m&client_version=2")), Miss)
    assert served(scene.play(ask("GET", "https://p.example/v1/models?client_version=2&limit=20"))).body.read(0, 9) == b"first"
    show = ask("POST", "https://p.example/api/show", JSON)
    scene.record(show, b'{"model":"a"}', 200, b"a", JSON)
    scene.session = None
    assert served(scene.play(show, b'{"model":"a","verbose":true}')).body.read(0, 9) == b"a"
    assert isinstance(scene.play(show, b'{"model":"b"}'), Miss)


def test_an_account_in_the_path_is_of_the_run() -> None:
    """C-13: a replay with another account, or none."""
    one, other = (
        f"https://p.example/backend-api/wham/accounts/{name}/settings"
        for name in ("3f0c2c1e-9a7b-4a52-8d9e-0f6f1f5b7c11", "0" * 8 + "-0000" * 3 + "-" + "0" * 12)
    )
    scene = Scene()
    scene.record(ask("GET", one), b"", 200, b"{}", JSON)
    assert served(scene.play(ask("GET", other))).answered is Answered.NORMALISED


def test_control_of_another_host_or_method_is_not_taken() -> None:
    """The endpoint is method, host and path."""
    scene = Scene()
    scene.record(ask("GET", "https://p.example/v1/models"), b"", 200, b"{}", JSON)
    assert isinstance(scene.play(ask("GET", "https://q.example/v1/models?x=1")), Miss)
    assert isinstance(scene.play(ask("POST", "https://p.example/v1/models", JSON), b"{}"), Miss)


def test_telemetry_that_was_only_refused_for_now_is_not_refused_again() -> None:
    """DESIGN 3: in replay the recorded answer of that endpoint, else 204, which the policy gives for a miss."""
    scene, batch = Scene(), ask("POST", "https://p.example/api/event_logging/v2/batch", JSON)
    scene.record(batch, b'{"events":[1]}', 503, b"", JSON)
    missed = scene.play(batch, b'{"events":[2]}')
    assert isinstance(missed, Miss)
    assert missed.channel is Channel.TELEMETRY


def test_where_nothing_may_be_repeated_the_last_is_not() -> None:
    """`Reuse.STRICT` holds for flags too."""
    scene, flags = Scene(), ask("POST", "https://api.provider.example/api/eval/sdk-abc", JSON)
    scene.record(flags, b'{"n":1}', 200, b"{}", JSON)
    scene.session = Player(scene.cassette, options=Options(reuse=Reuse.STRICT)).session()
    assert served(scene.play(flags, b'{"n":2}')).seq == 1
    assert isinstance(scene.play(flags, b'{"n":3}'), Miss)


def test_every_row_has_a_source_and_says_what_varies() -> None:
    """Tables of data carry their origin (STYLE 4)."""
    assert all(row.source and row.varies for row in TABLE)


@pytest.mark.parametrize("content", [None, b"", b"[" * 5000, b"[1]", b"\xff"])
def test_a_body_that_cannot_be_read_asks_nothing(content: bytes | None) -> None:
    """Hostile bytes never raise."""
    assert question(b"/api/show", content) == ()
    assert question(b"/x?" + b"a&" * 9000, content) == ()


def test_ids_are_taken_out_of_a_path_and_names_are_left() -> None:
    """Models are named in paths too."""
    assert endpoint(b"/v1/models/claude-opus-4-8?x") == b"/v1/models/claude-opus-4-8"
    assert endpoint(b"/a/%s/b" % (b"0f" * 32)) == b"/a/*/b"
    assert endpoint(b"/o/org-a1B2c3D4e5F6g7H8/s") == b"/o/*/s"
    assert [status for status in (200, 404, 408, 425, 429, 500, 503) if is_transient(status)] == [408, 425, 429, 500, 503]
    assert json.dumps(question(b"/v1/models?cursor=a&z=1", None)) == '[["cursor", "a"]]'
