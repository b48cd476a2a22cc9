"""What came of one live call."""

from __future__ import annotations

import json
from typing import Any, ClassVar

import msgpack
import pytest

from secondtake.cassettes import adapters
from secondtake.cassettes.exchange import Answer, Ending, Fields, Request
from secondtake.cassettes.verdicts import Verdict, invalid, judge, moved
from tests.cassettes.adapters.scenes import SSE_FIELDS, sse
from tests.cassettes.adapters.talk import PATHS

PIN = "claude-opus-4-6"
HOSTS = {"anthropic": "api.anthropic.com", "openai-chat": "api.openai.com", "openai-responses": "api.openai.com"}


def call(body: Any, *, adapter: str = "anthropic", status: int = 200, fields: Fields = (), host: str = "", **options: Any) -> Verdict:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    where = host or HOSTS.get(adapter, "h.example")
    read = adapters.read_answer(
        adapter, Request("POST", "https", where, 443, PATHS[adapter].encode()), Answer(status, fields=fields), content
    )
    return judge(read, **{"adapter": adapter, "forwarded": PIN, "status": status, "fields": fields, "host": where, **options})


def message(model: str = PIN, **more: Any) -> dict[str, Any]:
    return {"type": "message", "model": model, "content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn", "usage": {}, **more}


def test_the_pin_named_by_its_vendor_is_verified() -> None:
    """A-06: with the strength of the proof."""
    verdict = call(message())
    assert verdict == Verdict((PIN,), "medium", verified=True, reasons=("the message's `model`",))
    iterated = call(message(usage={"iterations": [{"type": "message", "model": PIN}]}))
    assert (iterated.proof, iterated.verified) == ("strong", True)


def test_another_model_is_a_mismatch_whatever_else_is_named() -> None:
    """A-04: a fallback or an advisor that is no pin makes the take invalid."""
    for body in (
        message("claude-sonnet-4-6"),
        message(usage={"iterations": [{"type": "message", "model": PIN}, {"type": "advisor_message", "model": "claude-sonnet-4-6"}]}),
    ):
        verdict = call(body)
        assert verdict.mismatch
        assert not verdict.verified
        assert "claude-sonnet-4-6" in verdict.served
        assert invalid({7: verdict, 8: call(message())}) == (7,)


def test_a_pin_given_to_a_fallback_is_no_mismatch() -> None:
    """A-04: every pin the request named may answer."""
    body = message(usage={"iterations": [{"type": "fallback_message", "model": "claude-sonnet-4-6"}]})
    assert call(body, pins=(PIN, "claude-sonnet-4-6")).mismatch is False


def test_nothing_named_is_unverified_and_never_verified() -> None:
    """A-06: Bedrock's Converse names no model."""
    verdict = call({"output": {"message": {"role": "assistant", "content": []}}, "stopReason": "end_turn"}, adapter="bedrock")
    assert (verdict.proof, verdict.verified, verdict.mismatch, verdict.served) == ("unverified", False, False, ())


def test_an_echo_of_a_host_that_maps_any_name_is_weak() -> None:
    """A-06: and of an unknown host, such it is."""
    assert (call(message(), host="models.example").proof, call(message(), host="models.example").verified) == ("weak", False)
    read = adapters.ModelAnswer("openai-chat", served=(adapters.Served("m", "model"),), complete=True)
    assert judge(read, adapter="openai-chat", forwarded="m", status=200).proof == "weak"


class TestTwins:
    CHAT: ClassVar[dict[str, Any]] = {
        "object": "chat.completion",
        "choices": [{"message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
    }

    def test_a_dated_name_for_an_undated_one_is_strong(self) -> None:
        """A-06: it says which model the name stood for."""
        verdict = call({**self.CHAT, "model": "gpt-5-2025-08-07"}, adapter="openai-chat", forwarded="gpt-5")
        assert (verdict.proof, verdict.verified) == ("strong", True)

    def test_another_of_the_family_is_a_mismatch(self) -> None:
        """A-04: a longer name is not a dated one."""
        assert call({**self.CHAT, "model": "gpt-5-mini-2025-08-07"}, adapter="openai-chat", forwarded="gpt-5").mismatch
        assert call({**self.CHAT, "model": "gpt-5-2026-01-01"}, adapter="openai-chat", forwarded="gpt-5-2025-08-07").mismatch

    def test_a_dated_twin_of_a_snapshot_verifies_nothing_and_contradicts_nothing(self) -> None:
        """PROVIDERS A4: `claude-opus-4-6` and `claude-opus-4-6-20260205` are both snapshots, not equal."""
        verdict = call(message(f"{PIN}-20260205"))
        assert (verdict.mismatch, verdict.verified) == (False, False)
        assert "dated twin" in verdict.reasons[-1]

    def test_a_name_that_was_two_models_in_one_take_has_moved(self) -> None:
        """A-06: an alias allowed by `--allow-unpinned` may move while the take runs."""
        one, two = (call({**self.CHAT, "model": f"gpt-5-2025-08-0{n}"}, adapter="openai-chat", forwarded="gpt-5") for n in (7, 8))
        echo = call({**self.CHAT, "model": "gpt-5"}, adapter="openai-chat", forwarded="gpt-5")
        assert moved([("gpt-5", one), ("gpt-5", echo), ("gpt-5", one)]) == {}
        assert moved([("gpt-5", one), ("gpt-5", two)]) == {"gpt-5": ("gpt-5-2025-08-07", "gpt-5-2025-08-08")}


class TestInfrastructure:
    @pytest.mark.parametrize(
        ("status", "kind"),
        [(429, "rate_limit_error"), (529, "overloaded_error"), (500, "api_error"), (503, "x"), (504, "timeout_error"), (408, "x")],
    )
    def test_overload_and_failures_are_not_the_models_doing(self, status: int, kind: str) -> None:
        """A-12: and not its refusal either."""
        verdict = call({"type": "error", "error": {"type": kind, "message": "later"}}, status=status, fields=((b"Retry-After", b"7"),))
        assert verdict.infrastructure is not None
        assert verdict.infrastructure.startswith(str(status))
        assert verdict.retry_after_s == 7
        assert (verdict.retired, verdict.mismatch, verdict.verified, verdict.incompatible) == (False, False, False, None)

    @pytest.mark.parametrize(
        ("ended", "why"),
        [
            (Ending.TIMEOUT, "in time"),
            (Ending.TLS_FAILED, "trusted"),
            (Ending.CLIENT_LEFT, "agent left"),
            (Ending.RESET, "connection failed"),
            (Ending.REFUSED, "connection failed"),
        ],
    )
    def test_no_answer_is_infrastructure(self, ended: Ending, why: str) -> None:
        """A-12: nothing came from the model."""
        verdict = judge(None, adapter="anthropic", forwarded=PIN, status=None, ended=ended)
        assert verdict.infrastructure is not None
        assert why in verdict.infrastructure
        assert (verdict.incomplete, verdict.proof) == (True, "unverified")

    @pytest.mark.parametrize(("status", "infrastructure"), [(200, None), (400, None), (503, "503 from the provider")])
    def test_an_answer_that_could_not_be_read_is_not_judged(self, status: int, infrastructure: str | None) -> None:
        """A-08: over a limit, or a coding that is not known: that is no failure of the provider's, and no proof either."""
        verdict = judge(None, adapter="anthropic", forwarded=PIN, status=status)
        assert (verdict.infrastructure, verdict.incomplete, verdict.verified, verdict.proof) == (infrastructure, True, False, "unverified")
        assert verdict.reasons == (f"the answer ({status}) could not be read",)

    def test_a_stream_cut_before_its_own_end_is_incomplete(self) -> None:
        """A-09: a 200 that ends early, however the socket ended; which model began it is still told."""
        begun = sse(("message_start", {"type": "message_start", "message": {"id": "m", "model": PIN, "content": []}}))
        for ended in (Ending.COMPLETE, Ending.RESET, Ending.CLIENT_LEFT):
            verdict = call(begun, fields=SSE_FIELDS, ended=ended)
            assert verdict.incomplete
            assert verdict.infrastructure is not None
            assert verdict.served == (PIN,)

    def test_a_stream_whose_own_end_came_is_whole_however_the_socket_ended(self) -> None:
        """A-09: clients close at `[DONE]`."""
        whole = sse(
            ("message_start", {"type": "message_start", "message": {"id": "m", "model": PIN, "content": []}}),
            ("message_stop", {"type": "message_stop"}),
        )
        verdict = call(whole, fields=SSE_FIELDS, ended=Ending.CLIENT_LEFT)
        assert (verdict.incomplete, verdict.infrastructure) == (False, None)

    def test_an_error_inside_a_stream_is_told(self) -> None:
        """A-08: after a 200."""
        broken = sse(
            ("message_start", {"type": "message_start", "message": {"id": "m", "model": PIN, "content": []}}),
            ("error", {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}),
        )
        verdict = call(broken, fields=SSE_FIELDS)
        assert verdict.infrastructure == "in the stream: overloaded_error: busy"
        assert verdict.incomplete

    @pytest.mark.parametrize(
        ("value", "seconds"), [(b"7", 7.0), (b" 12 ", 12.0), (b"-1", None), (b"Mon, 01 Dec 2026 00:00:00 GMT", None), (b"9" * 40, None)]
    )
    def test_the_wait_asked_for_is_told_where_it_is_a_number(self, value: bytes, seconds: float | None) -> None:
        """A-12: told, never waited for here."""
        assert call(b"", status=429, fields=((b"retry-after", value),)).retry_after_s == seconds
        assert call(b"", status=429, fields=((b"retry-after-ms", b"1500"), (b"retry-after", b"9"))).retry_after_s == 1.5


class TestRefusals:
    @pytest.mark.parametrize(
        ("adapter", "status", "body"),
        [
            ("anthropic", 404, {"type": "error", "error": {"type": "not_found_error", "message": f"model: {PIN}"}}),
            (
                "openai-chat",
                404,
                {"error": {"message": "The model `m` does not exist", "type": "invalid_request_error", "code": "model_not_found"}},
            ),
            ("gemini", 404, {"error": {"code": 404, "status": "NOT_FOUND", "message": "models/m is not found for API version v1beta"}}),
        ],
    )
    def test_an_id_the_provider_does_not_know_is_retired(self, adapter: str, status: int, body: Any) -> None:
        """A-05: retired, not failed."""
        verdict = call(body, adapter=adapter, status=status)
        assert verdict.retired
        assert (verdict.infrastructure, verdict.incompatible, verdict.incomplete) == (None, None, False)

    def test_a_refused_request_is_incompatible_and_says_why(self) -> None:
        """PROVIDERS A3: betas, parameters, context; surfaced, not failed."""
        verdict = call({"type": "error", "error": {"type": "invalid_request_error", "message": "temperature"}}, status=400)
        assert verdict.incompatible == "400: invalid_request_error: temperature"
        assert not verdict.retired

    def test_a_missing_path_is_not_a_retired_model(self) -> None:
        """A-05: a 404 that names no model."""
        assert not call({"type": "error", "error": {"type": "not_found_error", "message": "no such route"}}, status=404).retired


def test_what_an_answer_names_is_kept_printable_and_bounded() -> None:
    """A-06: it is the provider's to choose, and may be anything."""
    iterations = [{"type": "message", "model": f"\x1b[2J\ud800{n}" + "x" * 1000} for n in range(200)]
    verdict = call(message(usage={"iterations": iterations}))
    assert verdict.mismatch
    assert len(verdict.served) <= 64
    assert all(name.isprintable() and len(name) <= 512 for name in verdict.served)
    assert all(reason.isprintable() and len(reason) <= 400 for reason in verdict.reasons)
    refused = call({"type": "error", "error": {"type": "x", "message": "\x1b" * 500}}, status=400)
    assert refused.incompatible is not None
    assert refused.incompatible.isprintable()


def test_what_is_told_of_a_call_is_plain() -> None:
    """A-06: it stands in the cassette."""
    told = call(message()).described()
    assert msgpack.unpackb(msgpack.packb(told)) == told
