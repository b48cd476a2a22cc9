"""What every adapter must do: the same four conversations give the same values whichever wire format carried them.

A new adapter's test file holds a class with nothing but `forms`, and what is particular to it.
"""

from __future__ import annotations

from typing import ClassVar

import pytest

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import CallKind, ModelAnswer, Role, Tool, Turn
from secondtake.cassettes.adapters.reading import canonical
from tests.cassettes.adapters.formats import Format
from tests.cassettes.adapters.scenes import JSON_FIELDS, MODEL, SCENES, SCHEMA, SYSTEM, WEATHER, Scene

scenes = pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.name)
NEW = "other-2-20270202"


def read(form: Format, scene: Scene, content: bytes, step: int) -> ModelAnswer:
    request, _ = form.request(scene)
    reader = adapters.reader(form.adapter, request, 200, form.fields)
    for start in range(0, len(content), step):
        reader.receive(content[start : start + step])
    reader.receive(b"")
    return reader.answer()


def check(form: Format, scene: Scene, answer: ModelAnswer) -> None:
    assert answer.adapter == form.adapter
    assert answer.turn == Turn(Role.ASSISTANT, scene.said)
    assert answer.stop is scene.stop
    assert answer.complete is not scene.failed
    if not scene.failed:
        assert (answer.usage.input, answer.usage.output) == (12, 7)
        assert not answer.usage.partial
    if "converse" not in form.name:
        assert [(one.model, one.role) for one in answer.served] == [(MODEL, "answer")]
    broken = [fault for fault in answer.faults if fault.kind != "framing"]
    assert broken == []


class AdapterContract:
    """`forms`: the wire formats the adapter reads, from `formats.py`."""

    forms: ClassVar[tuple[Format, ...]] = ()

    @scenes
    def test_a_request_is_recognised_by_path_and_body(self, form: Format, scene: Scene) -> None:
        """A-01, A-02: and by its path alone, before the body is there."""
        request, content = form.request(scene)
        assert adapters.recognise(request, content) == form.adapter
        call = adapters.classify(request, content)
        assert call is not None
        assert call.kind is CallKind.COMPLETION
        if form.name not in ("gateway", "ollama"):
            assert adapters.recognise(request, None) == form.adapter

    @scenes
    def test_a_request_is_read_into_the_same_turns(self, form: Format, scene: Scene) -> None:
        """Issue 3, item 1: turns, tools, calls, results, parameters."""
        request, content = form.request(scene)
        asked = adapters.read_request(form.adapter, request, content)
        assert asked.faults == ()
        assert asked.model == MODEL
        assert asked.system == (SYSTEM,)
        assert asked.turns == scene.turns
        schema = canonical(SCHEMA)  # type: ignore[arg-type]  # a literal of JSON
        assert isinstance(schema, str)
        assert asked.tools == (Tool("shell", "Runs it.", schema),)
        assert asked.stream
        assert {key: asked.parameters[key] for key in ("max_tokens", "temperature", "stop", "tool_choice")} == {
            "max_tokens": 99,
            "temperature": 0.5,
            "stop": ["END"],
            "tool_choice": "any",
        }

    @pytest.mark.parametrize("step", [1, 7, 1 << 20])
    @scenes
    def test_a_streamed_answer_is_read_alike_however_it_is_cut(self, form: Format, scene: Scene, step: int) -> None:
        """A-08, T-B2, T-B5: whole, byte by byte, and at seven bytes."""
        answer = read(form, scene, form.stream(scene), step)
        check(form, scene, answer)
        assert answer.usage.partial is scene.failed
        if scene.failed:
            assert answer.error is not None
            assert (answer.error.infrastructure, answer.error.in_stream) == (True, True)
            assert WEATHER in answer.error.message
        else:
            assert answer.error is None

    @scenes
    def test_a_whole_answer_is_read_like_its_stream(self, form: Format, scene: Scene) -> None:
        """The same scene unstreamed, under a JSON content type."""
        if scene.failed:
            scene = SCENES[0]
        request, _ = form.request(scene)
        reader = adapters.reader(form.adapter, request, 200, JSON_FIELDS)
        reader.receive(form.whole(scene))
        reader.receive(b"")
        check(form, scene, reader.answer())

    @scenes
    def test_a_stream_cut_at_any_byte_is_incomplete_and_never_raises(self, form: Format, scene: Scene) -> None:
        """A-08, A-09: a 200 that ends without its own end is not complete; the text so far is kept."""
        content = form.stream(scene)
        whole = read(form, scene, content, len(content))
        for stop in range(0, len(content) - 1, max(1, len(content) // 61)):
            answer = read(form, scene, content[:stop], 1 << 20)
            assert whole.text.startswith(answer.text)
            assert len(answer.calls) <= len(whole.calls)
            if answer.complete:
                assert answer.turn == whole.turn

    @scenes
    def test_a_swap_changes_the_bytes_of_the_id_and_no_other(self, form: Format, scene: Scene) -> None:
        """A-03, T-P1: the decoy `"model"` in a tool result and in a tool's arguments stays."""
        request, content = form.request(scene)
        asked = adapters.read_request(form.adapter, request, content)
        changes = dict.fromkeys(asked.places, NEW)
        assert changes
        swapped, path = adapters.splice(content, changes), adapters.splice_path(request.path, changes)
        again, expected = form.request(scene, NEW)
        assert swapped == expected
        assert path == again.path
        other = adapters.read_request(form.adapter, again, swapped)
        assert other.model == NEW
        assert other.turns == asked.turns

    def test_a_refusal_is_a_400_in_the_providers_shape_that_is_not_retried(self, form: Format) -> None:
        """DESIGN 3, Misses: every measured agent stops at once."""
        refusal = adapters.refusal(form.adapter, "model-diverged", "no such request on the cassette")
        assert refusal.status == 400
        assert (b"x-should-retry", b"false") in refusal.fields
        assert b"no such request on the cassette" in refusal.body
        request, _ = form.request(SCENES[0])
        reader = adapters.reader(form.adapter, request, 400, refusal.fields)
        reader.receive(refusal.body)
        reader.receive(b"")
        error = reader.answer().error
        assert error is not None
        assert (error.message, error.infrastructure) == ("no such request on the cassette", False)

    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\xff\xfe{",
            b"{",
            b"null",
            b"[]",
            b"[" * 100_000,
            b'{"model":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
            b'{"model":' + b"9" * 5000 + b"}",
            b'{"messages":[1,null,{"content":[null,{"type":7}]}],"contents":[null,{"parts":[3]}],"input":[[],{"type":[]}],"tools":[0,{}]}',
            b'{"model":{"a":1},"messages":{"a":1},"contents":"x","input":5,"tools":"y","system":9}',
            b'{"model":"\\ud800","messages":[{"role":"user","content":"\\udfff"}]}',
            b"data: {\n\ndata: [DONE]\n\n",
            b"event: error\ndata: 5\n\n",
            b"\0" * 64,
        ],
        ids=lambda content: repr(content[:20]),
    )
    def test_hostile_bytes_give_faults_and_never_an_exception(self, form: Format, content: bytes) -> None:
        """A-08, B-11: on both sides, whatever the framing."""
        request, _ = form.request(SCENES[0])
        adapters.recognise(request, content)
        asked = adapters.read_request(form.adapter, request, content)
        assert asked.adapter == form.adapter
        for status in (200, 500):
            for fields in (form.fields, JSON_FIELDS, ()):
                reader = adapters.reader(form.adapter, request, status, fields)
                reader.receive(content)
                reader.receive(b"")
                answer = reader.answer()
                assert answer.faults or answer.error or not answer.complete or content == b"data: {\n\ndata: [DONE]\n\n"
