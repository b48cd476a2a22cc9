"""Another model's request: the ID changes, and nothing else does."""

from __future__ import annotations

import gzip
import json
import random
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.casting import Casting
from secondtake.cassettes.content import decode, encode
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.exchange import Fields, Request
from secondtake.cassettes.swap import RULES, Refused, Swap, check_rules, prepare
from tests.cassettes.adapters.formats import FORMATS, Format
from tests.cassettes.adapters.scenes import MODEL, SCENES
from tests.cassettes.adapters.talk import PATHS

PIN = "claude-opus-4-6"
ANY = Casting.of([PIN], allow_unpinned=True)
LONG = Casting.of(["arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-4-6-v1:0"], allow_unpinned=True)
FIELDS: Fields = (
    (b"Host", b"api.anthropic.com"),
    (b"X-Api-Key", b"sk-ant-real"),
    (b"content-LENGTH", b"0"),
    (b"anthropic-beta", b"one-2025-01-01, two-2025-02-02"),
    (b"anthropic-beta", b"three"),
)


def messages(**more: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], **more}


def post(body: Any, *, adapter: str = "anthropic", fields: Fields = FIELDS, path: str = "") -> tuple[Request, bytes]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = tuple((name, b"%d" % len(content) if name.lower() == b"content-length" else value) for name, value in fields)
    return Request("POST", "https", "api.anthropic.com", 443, (path or PATHS[adapter]).encode(), fields=sent), content


def swapped(body: Any, *, casting: Casting = ANY, adapter: str = "anthropic", path: str = "", **options: Any) -> Swap:
    made = prepare(*post(body, adapter=adapter, path=path), adapter, casting, **options)
    assert isinstance(made, Swap), made
    return made


def refused(body: Any, *, casting: Casting = ANY, adapter: str = "anthropic", path: str = "", **options: Any) -> Refused:
    made = prepare(*post(body, adapter=adapter, path=path), adapter, casting, **options)
    assert isinstance(made, Refused), made
    return made


class TestEveryFormat:
    @pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
    @pytest.mark.parametrize("number", range(len(SCENES)))
    def test_only_the_id_is_another(self, form: Format, number: int) -> None:
        """A-03: what is sent is what the agent would have sent had it asked for the pin, byte for byte."""
        request, content = form.request(SCENES[number])
        made = prepare(request, content, form.adapter, ANY)
        expected, body = form.request(SCENES[number], PIN)
        assert isinstance(made, Swap)
        assert (made.request.path, made.content) == (expected.path, body)
        assert (made.requested, made.forwarded, made.pins, made.notes) == ((MODEL,), PIN, (PIN,), ())

    @pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.name)
    def test_the_same_pin_as_the_model_changes_no_byte(self, form: Format) -> None:
        """A-03: a retake of the same model sends what was sent."""
        request, content = form.request(SCENES[2])
        made = prepare(request, content, form.adapter, Casting.of([MODEL], allow_unpinned=True))
        assert isinstance(made, Swap)
        assert (made.request, made.content) == (request, content)

    @pytest.mark.parametrize("form", [form for form in FORMATS if form.model_in_path], ids=lambda form: form.name)
    def test_an_arn_in_the_path_stays_one_segment(self, form: Format) -> None:
        """A-03: slashes and colons of an ARN are escaped."""
        request, content = form.request(SCENES[0])
        made = prepare(request, content, form.adapter, LONG)
        assert isinstance(made, Swap)
        assert made.request.path.count(b"/") == request.path.count(b"/")
        again = prepare(made.request, made.content, form.adapter, ANY)
        assert isinstance(again, Swap)
        assert again.requested == (LONG.pins["*"],)


@given(st.sampled_from([form for form in FORMATS if form.model_in_path]), st.text(min_size=1, max_size=12))
def test_any_pin_is_one_segment_of_a_path_and_read_back(form: Format, pin: str) -> None:
    """A-03: whatever characters a pin has, it names itself and nothing else."""
    try:
        casting = Casting.of([f"*={pin}"], allow_unpinned=True)
    except BadInput:
        return
    request, content = form.request(SCENES[0])
    made = prepare(request, content, form.adapter, casting)
    assert isinstance(made, Swap)
    assert made.content == content
    again = prepare(made.request, made.content, form.adapter, ANY)
    assert isinstance(again, Swap)
    assert again.requested == (made.forwarded,) or not made.forwarded.isascii()
    assert replace(again.request, path=b"") == replace(request, path=b"")


def spelled(value: Any, rng: random.Random) -> str:
    """JSON text of a value with keys in any order, any white space, any escapes."""
    space = rng.choice(["", " ", "\n\t", "  "])
    if isinstance(value, dict):
        entries = list(value.items())
        rng.shuffle(entries)
        inner = [f"{space}{spelled(key, rng)}{space}:{space}{spelled(entry, rng)}" for key, entry in entries]
        return "{" + f"{space},".join(inner) + space + "}"
    if isinstance(value, list):
        return "[" + f",{space}".join(spelled(entry, rng) for entry in value) + space + "]"
    if isinstance(value, str):
        if value == PIN:  # a swap writes it plainly
            return f'"{PIN}"'
        return '"' + "".join(f"\\u{ord(c):04x}" if rng.random() < 0.2 and ord(c) < 0x10000 else json.dumps(c)[1:-1] for c in value) + '"'
    return json.dumps(value)


BODIES = [
    (
        "anthropic",
        messages(tools=[{"name": "t", "input_schema": {"properties": {"model": {"default": "x"}}}}], fallbacks=[{"model": "OLD"}]),
    ),
    ("anthropic", messages(tools=[{"type": "advisor_20260301", "name": "a", "model": "OLD"}])),
    ("openai-chat", {"model": "OLD", "messages": [{"role": "user", "content": '{"model": "decoy"}'}], "moderation": {"model": "m"}}),
    ("gateway", {"model": "OLD", "models": ["OLD", "OLD"], "messages": [{"role": "user", "content": "\u00e9\U0001f600"}]}),
    ("openai-responses", {"model": "OLD", "input": [{"role": "user", "content": "model"}], "moderation": {"model": "m"}}),
    ("ollama", {"model": "OLD", "messages": [{"role": "user", "content": "x"}]}),
]


def cast(value: Any, model: str) -> Any:
    if isinstance(value, dict):
        return {key: cast(entry, model) for key, entry in value.items()}
    if isinstance(value, list):
        return [cast(entry, model) for entry in value]
    return model if value in ("OLD", "claude-sonnet-4-5") else value


class TestEverySpelling:
    @given(st.sampled_from(BODIES), st.integers(0, 2**32))
    def test_any_spelling_of_a_body_keeps_every_other_byte(self, body: tuple[str, Any], seed: int) -> None:
        """A-03: unusual order of keys, escapes in keys and values, white space."""
        adapter, value = body
        old = spelled(cast(value, PIN), random.Random(seed)).replace(f'"{PIN}"', '"\\u004fLD"').encode()
        made = swapped(old, adapter=adapter)
        assert made.content == spelled(cast(value, PIN), random.Random(seed)).encode()
        assert made.requested == ("OLD",)

    def test_both_of_a_key_given_twice_are_another(self) -> None:
        """A-03: which one a server takes is its own business."""
        made = swapped(b'{"model":"a","max_tokens":1,"messages":[{"role":"user","content":"x"}],"mod\\u0065l" : "b"}')
        assert made.content == (
            f'{{"model":"{PIN}","max_tokens":1,"messages":[{{"role":"user","content":"x"}}],"mod\\u0065l" : "{PIN}"}}'.encode()
        )
        assert made.requested == ("b", "a")

    def test_a_conversation_of_a_hundred_thousand_messages_is_swapped_in_seconds(self) -> None:
        """A-03: one pass, whatever the length."""
        turn = b'{"role":"user","content":[{"type":"text","text":"{\\"model\\": \\"x\\"}"}]}'
        body = b'{"max_tokens":1,"messages":[' + b",".join([turn] * 100_000) + b'],"model":"old"}'
        began = time.perf_counter()
        made = swapped(body)
        assert time.perf_counter() - began < 15
        assert made.content == body[:-5] + PIN.encode() + b'"}'


class TestFraming:
    @pytest.mark.parametrize("codings", [("gzip",), ("x-gzip",), ("deflate",), ("br",), ("zstd",), ("gzip", "br"), ("identity",)])
    def test_a_coded_body_is_coded_again_the_same_way(self, codings: tuple[str, ...]) -> None:
        """A-03: Codex sends zstd."""
        names = tuple(name for name in codings if name != "identity")
        fields = (*FIELDS, (b"Content-Encoding", ", ".join(codings).encode()))
        plain = json.dumps(messages()).encode()
        made = prepare(*post(encode(plain, names), fields=fields), "anthropic", ANY)
        assert isinstance(made, Swap)
        assert decode(made.content, names) == plain.replace(b"claude-sonnet-4-5", PIN.encode())
        assert made.request.fields == tuple(
            (name, b"%d" % len(made.content) if name == b"content-LENGTH" else value) for name, value in fields
        )

    def test_a_coded_body_whose_model_stands_in_the_path_keeps_its_bytes(self) -> None:
        """A-03: nothing is coded again without need."""
        form = next(form for form in FORMATS if form.model_in_path)
        request, content = form.request(SCENES[0])
        coded = gzip.compress(content, 1)
        made = prepare(replace(request, fields=((b"content-encoding", b"gzip"),)), coded, form.adapter, ANY)
        assert isinstance(made, Swap)
        assert made.content is coded
        assert made.request.path != request.path

    def test_fields_keep_their_order_and_spelling_but_for_the_length(self) -> None:
        """A-03: the credential is not this module's; a repeated length stays repeated."""
        made = swapped(messages())
        length = b"%d" % len(made.content)
        assert made.request.fields == tuple((name, length if name == b"content-LENGTH" else value) for name, value in FIELDS)

    def test_a_body_without_length_gets_none(self) -> None:
        """A-03: chunked bodies are framed by the wire."""
        request, content = post(messages(), fields=((b"Transfer-Encoding", b"chunked"),))
        made = prepare(request, content, "anthropic", ANY)
        assert isinstance(made, Swap)
        assert made.request.fields == request.fields

    def test_a_digest_of_the_old_body_goes_and_is_told(self) -> None:
        """A-03: it would be wrong of any other body."""
        request, content = post(messages(), fields=(*FIELDS, (b"Content-MD5", b"AAAA"), (b"Repr-Digest", b"sha-256=:AA=:")))
        made = prepare(request, content, "anthropic", ANY)
        assert isinstance(made, Swap)
        assert [name for name, _ in made.request.fields] == [name for name, _ in FIELDS]
        assert [note.partition(":")[0] for note in made.notes] == ["digest-dropped", "digest-dropped"]

    @pytest.mark.parametrize(
        ("coding", "content", "why"),
        [
            (b"gzip", b"no gzip", "damaged"),
            (b"lzma", b"x", "unknown content coding"),
            (b"gzip", gzip.compress(bytes(80 * 1024 * 1024)), "decodes to more than"),
            (b"gzip", gzip.compress(b"{}")[:-3], "ends early"),
        ],
        ids=["damaged", "unknown", "bomb", "cut"],
    )
    def test_a_body_that_cannot_be_decoded_is_refused(self, coding: bytes, content: bytes, why: str) -> None:
        """A-03: never sent as it is with the old model in it."""
        made = prepare(*post(content, fields=((b"content-encoding", coding),)), "anthropic", ANY)
        assert isinstance(made, Refused)
        assert made.kind == "unreadable"
        assert why in made.reason


class TestPlaces:
    def test_fallbacks_and_advisors_are_pinned_too(self) -> None:
        """A-04: each by its own entry."""
        body = messages(fallbacks=[{"model": "second"}], tools=[{"type": "advisor_20260301", "name": "a", "model": "third"}])
        casting = Casting.of([f"claude-sonnet-4-5={PIN}", "second=claude-sonnet-4-6", f"third={PIN}"])
        made = swapped(body, casting=casting)
        sent = json.loads(made.content)
        assert (sent["model"], sent["fallbacks"], sent["tools"][0]["model"]) == (PIN, [{"model": "claude-sonnet-4-6"}], PIN)
        assert made.requested == ("claude-sonnet-4-5", "second", "third")
        assert (made.forwarded, made.pins) == (PIN, (PIN, "claude-sonnet-4-6"))

    def test_a_fallback_without_an_entry_is_refused_by_its_path(self) -> None:
        """A-04, A-05: swapping `model` alone would leave a hole."""
        made = refused(messages(fallbacks=[{"model": "second"}]), casting=Casting.of([f"claude-sonnet-4-5={PIN}"]))
        assert made.kind == "unmapped"
        assert "fallbacks[0].model" in made.reason
        assert "--model second=PIN" in made.reason

    @pytest.mark.parametrize(
        ("adapter", "body", "path"),
        [
            ("anthropic", messages(fallbacks="default"), "fallbacks"),
            ("openai-responses", {"model": "m", "prompt": {"id": "pmpt_1"}, "input": "x"}, "prompt.id"),
            ("gateway", {"model": "m", "route": "fallback", "messages": [{"role": "user", "content": "x"}]}, "route"),
            ("gateway", {"agent_id": "ag", "messages": [{"role": "user", "content": "x"}]}, "agent_id"),
        ],
    )
    def test_a_model_chosen_elsewhere_is_refused(self, adapter: str, body: Any, path: str) -> None:
        """A-04: nothing in the request could be rewritten so that the pin answers."""
        made = refused(body, adapter=adapter)
        assert made.kind == "indirect"
        assert f"`{path}`" in made.reason

    def test_a_moderator_is_never_touched(self) -> None:
        """A-04: it is no actor."""
        made = swapped({"model": "m", "input": "x", "moderation": {"model": "omni"}}, adapter="openai-responses")
        assert json.loads(made.content)["moderation"] == {"model": "omni"}
        assert made.requested == ("m",)

    @pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"model":1,"messages":[]}', b"{" * 300, b'{"messages":[}', b"\xff"])
    def test_a_body_without_a_model_is_refused(self, body: bytes) -> None:
        """A-04: no place, no swap; never raises for what is in a request."""
        assert refused(body).kind == "no-model"

    @given(st.binary(max_size=80))
    def test_no_body_raises(self, body: bytes) -> None:
        """A-04: recorded and live bytes are hostile."""
        request, _ = post(body)
        for adapter in ("anthropic", "openai-responses", "gateway", "gemini"):
            prepare(request, body, adapter, ANY, rules=frozenset(RULES), continues=True, strip_reasoning=True)

    def test_what_is_no_call_for_an_answer_is_refused(self) -> None:
        """A-04: batches hold many models for later."""
        made = refused({"requests": [{"params": messages()}]}, path="/v1/messages/batches")
        assert made.kind == "kind"

    def test_counting_tokens_is_swapped(self) -> None:
        """A-04: the count is asked of the model that will be used."""
        assert json.loads(swapped(messages(), path="/v1/messages/count_tokens").content)["model"] == PIN

    def test_a_pin_the_provider_does_not_hold_is_refused_at_the_call(self) -> None:
        """A-05: a casting may be for several providers."""
        casting = Casting.of(["gpt-5-2025-08-07"], providers=["openai", "anthropic"])
        assert refused(messages(), casting=casting).kind == "unpinned"

    def test_an_id_of_any_characters_is_kept_printable(self) -> None:
        """A-06: the requested ID stands in the take and on terminals, and is the agent's to choose."""
        made = swapped(b'{"max_tokens":1,"messages":[],"model":"\\ud800\\u001b[2J' + b"x" * 5000 + b'"}')
        assert made.requested[0].startswith("\\xd800\\x1b[2Jxx")
        assert len(made.requested[0]) == 512
        casting = Casting.of([f"a={PIN}"])
        assert refused(b'{"max_tokens":1,"messages":[],"model":"\\ud800"}', casting=casting).reason.isprintable()


class TestRules:
    def test_no_rule_is_applied_unasked(self) -> None:
        """PROVIDERS A3: off by default."""
        body = messages(temperature=1, thinking={"type": "enabled", "budget_tokens": 1024}, tool_choice={"type": "any"})
        made = swapped(body)
        assert json.loads(made.content) == {**body, "model": PIN}
        assert made.notes == ()

    def test_each_use_of_a_rule_is_told_by_its_name(self) -> None:
        """PROVIDERS A3: `request_patched`, with the place."""
        body = messages(temperature=1, top_p=0.5, thinking={"type": "enabled"}, anthropic_beta=["one-2025-01-01", "x"])
        made = swapped(body, rules={"drop-sampling", "drop-thinking", "drop-advisor", "drop-beta:one-2025-01-01"})
        assert json.loads(made.content) == {**messages(), "model": PIN, "anthropic_beta": ["x"]}
        assert made.notes == (
            "request_patched: drop-sampling: `temperature` (1 bytes)",
            "request_patched: drop-sampling: `top_p` (3 bytes)",
            "request_patched: drop-thinking: `thinking` (19 bytes)",
            "request_patched: drop-beta:one-2025-01-01: `anthropic_beta`",
            "request_patched: drop-beta:one-2025-01-01: field `anthropic-beta`",
        )
        betas = [value for name, value in made.request.fields if name == b"anthropic-beta"]
        assert betas == [b"two-2025-02-02", b"three"]

    def test_dropped_fallbacks_need_no_pin(self) -> None:
        """A-04: PROVIDERS A3 lets them be deleted instead."""
        made = swapped(messages(fallbacks="default"), rules={"drop-fallbacks"})
        assert json.loads(made.content) == {**messages(), "model": PIN}

    @pytest.mark.parametrize("name", ["", "drop", "drop-beta:", "strip-reasoning", "DROP-SAMPLING"])
    def test_an_unknown_rule_is_refused_with_the_list(self, name: str) -> None:
        """PROVIDERS A3: a misspelt rule is not a rule that did nothing."""
        with pytest.raises(BadInput) as raised:
            check_rules([name])
        assert raised.value.hint is not None
        assert all(rule in raised.value.hint for rule in RULES)


class TestContinuing:
    HISTORY = messages(
        messages=[
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "S"}, {"type": "text", "text": "a"}]},
            {"role": "user", "content": "go on"},
        ]
    )

    def test_a_live_history_is_forwarded_as_it_is(self) -> None:
        """PROVIDERS finding 3: the forwarded prefix is never edited."""
        made = swapped(self.HISTORY, strip_reasoning=True)
        assert json.loads(made.content) == {**self.HISTORY, "model": PIN}

    def test_a_recorded_history_is_refused_or_stripped_and_then_swapped(self) -> None:
        """A-11: refused unless `--strip-reasoning`; each block is listed."""
        assert refused(self.HISTORY, continues=True).kind == "held"
        made = swapped(self.HISTORY, continues=True, strip_reasoning=True)
        sent = json.loads(made.content)
        assert (sent["model"], sent["messages"][1]["content"]) == (PIN, [{"type": "text", "text": "a"}])
        assert made.notes == ("request_patched: strip-thinking: `messages[1].content[0]` (55 bytes)",)
