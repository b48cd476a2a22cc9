"""Another model in the part: only its calls leave, to one host, as the pin; the take is whole by itself."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from secondtake.cassettes.casting import Casting
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.exchange import Channel, Ending, Request
from secondtake.cassettes.player import Player, Serve
from secondtake.cassettes.stops import Stops
from secondtake.proxy import addon
from secondtake.proxy.addon import Wire
from secondtake.proxy.credentials import NoCredential
from secondtake.proxy.policy import Mode
from secondtake.proxy.retake import Retake
from secondtake.proxy.settings import Settings
from secondtake.proxy.signing import Signer
from tests.proxy.world import HOST, Got, MemoryWriter, World, reply, simple, until, world

OLD, NEW = "claude-sonnet-4-5-20250929", "claude-opus-4-6"
JSON = b"Content-Type: application/json\r\n"


def body(model: str, *turns: str) -> bytes:
    """A request with spacing and an escape that no serialiser would make again."""
    roles = ("user", "assistant")
    messages = ", ".join(f'{{"role":"{roles[n % 2]}","content":"{turn}"}}' for n, turn in enumerate(turns))
    return f'{{ "max_tokens":9,"model" : "{model}", "messages":[{messages}],"x":"\\u0061"}}'.encode()


def answer(model: str, text: str = "hi", *, status: bytes = b"200 OK") -> bytes:
    content = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
    return simple(json.dumps(content).encode(), status=status, fields=JSON)


class Model:
    """An origin that answers as whichever model it is asked for; keeps what it was sent."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.served: str | None = None
        self.status = b"200 OK"

    async def messages(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
        self.bodies.append(await reader.readexactly(length))
        model = json.loads(self.bodies[-1])["model"]
        if self.status != b"200 OK":
            writer.write(simple(b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}', status=self.status, fields=JSON))
        else:
            writer.write(answer(self.served or model, f"from {model}"))


async def post(w: World, content: bytes, path: str = "/v1/messages") -> Got:
    return await w.get(path, method="POST", fields=JSON, body=content)


class Stage:
    """A recorded scene: one page, two model calls."""

    def __init__(self, w: World, model: Model) -> None:
        self.w = w
        self.model = model
        self.take = MemoryWriter()

    async def record(self) -> None:
        await self.w.record()
        await self.w.get("/page")
        await post(self.w, body(OLD, "one"))
        await post(self.w, body(OLD, "one", "hi", "two"))

    async def retake(self, *, models: tuple[str, ...] = (NEW,), **given: Any) -> Wire:
        w = self.w
        made = Settings(Mode.RETAKE, trust=w.world_authority.ca_path, loopback=True)
        retake = Retake(Casting.of(models, allow_unpinned=True), given.pop("stops", Stops()), **given)
        wire = Wire(
            made,
            w.authority,
            redactor=w.redactor,
            now_us=w.now_us,
            now_s=lambda: 1_800_000_000,
            writer=self.take,  # type: ignore[arg-type]
            player=Player(w.writer.cassette(), w.redactor),
            retake=retake,
            resolver=w._resolve,
            known_hosts=frozenset({HOST}),
        )
        return await w._start(wire)


def staged(w: World, model: Model) -> Stage:
    w.origin.scripts.update({b"/v1/messages": model.messages, b"/page": reply(simple(b"page")), b"/new": reply(simple(b"new"))})
    return Stage(w, model)


async def test_only_model_calls_leave_and_only_their_id_is_changed(tmp_path: Path) -> None:
    """A-03, T-P1, T-P6: every other byte equal; pages come from the cassette; what is not on it is a miss."""
    async with world(tmp_path, {}) as w:
        model = Model()
        stage = staged(w, model)
        await stage.record()
        heads, connections = len(w.origin.heads), w.origin.connections
        wire = await stage.retake()
        assert (await w.get("/page")).body == b"page"
        sent = body(OLD, "one", "hi", "something else")
        got = await post(w, sent)
        assert json.loads(got.body)["content"][0]["text"] == f"from {NEW}"
        assert model.bodies[-1] == sent.replace(OLD.encode(), NEW.encode())
        assert (await w.get("/new")).status == 424
        assert w.origin.connections == connections + 1
        assert len(w.origin.heads) == heads + 1
        assert wire.outcome.answered == {"exact": 1, "live": 1, "miss": 1}
        assert wire.outcome.requests == 3
        assert wire.retake is not None
        (call,) = wire.retake.calls
        assert (call.requested, call.forwarded, call.verdict.mismatch) == ((OLD,), NEW, False)


async def test_the_take_replays_offline_whole(tmp_path: Path) -> None:
    """T-P7: what was played and what was live are both on it."""
    async with world(tmp_path, {}) as w:
        stage = staged(w, Model())
        await stage.record()
        await stage.retake()
        await w.get("/page")
        first, second = await post(w, body(OLD, "one")), await post(w, body(OLD, "one", "hi", "other"))
        await w.stop()
        live = [exchange for exchange in stage.take.exchanges if exchange.channel is Channel.MODEL]
        assert [exchange.forwarded for exchange in live] == [("model-swap",)] * 2
        assert [exchange.details["model_call"]["forwarded"] for exchange in live] == [NEW] * 2  # type: ignore[index]
        assert [str(exchange.answered) for exchange in stage.take.exchanges] == ["exact", "live", "live"]
        w.writer = stage.take
        connections = w.origin.connections
        wire = await w.replay()
        assert (await w.get("/page")).body == b"page"
        assert (await post(w, body(OLD, "one"))).body == first.body
        assert (await post(w, body(OLD, "one", "hi", "other"))).body == second.body
        assert wire.outcome.answered == {"exact": 3}
        assert w.origin.connections == connections


async def test_the_first_steps_come_from_the_cassette(tmp_path: Path) -> None:
    """`--from-step 1`: one call played, then live; the counts say so."""
    async with world(tmp_path, {}) as w:
        model = Model()
        stage = staged(w, model)
        await stage.record()
        before = len(model.bodies)
        wire = await stage.retake(from_step=1)
        first = await post(w, body(OLD, "one"))
        assert json.loads(first.body)["content"][0]["text"] == f"from {OLD}"
        second = await post(w, body(OLD, "one", "hi", "two"))
        assert json.loads(second.body)["content"][0]["text"] == f"from {NEW}"
        assert len(model.bodies) == before + 1
        assert wire.outcome.answered == {"exact": 1, "live": 1}


async def test_another_model_than_the_pin_is_a_mismatch_and_on_the_record(tmp_path: Path) -> None:
    """T-P2, A-04, A-06."""
    async with world(tmp_path, {}) as w:
        model = Model()
        stage = staged(w, model)
        await stage.record()
        wire = await stage.retake()
        model.served = "claude-haiku-4-5-20251001"
        await post(w, body(OLD, "one"))
        assert wire.retake is not None
        assert wire.retake.calls[0].verdict.mismatch
        details = stage.take.exchanges[0].details["model_call"]
        assert isinstance(details, dict)
        assert (details["served"], details["mismatch"]) == (["claude-haiku-4-5-20251001"], True)


@pytest.mark.parametrize("status", [b"429 Too Many Requests", b"529 Overloaded", b"500 Internal Server Error"])
async def test_a_busy_provider_is_infrastructure_and_is_not_asked_again_by_us(tmp_path: Path, status: bytes) -> None:
    """T-P5, A-12: the agent sees the status as it is; the proxy never retries a model call."""
    async with world(tmp_path, {}) as w:
        model = Model()
        stage = staged(w, model)
        await stage.record()
        wire = await stage.retake()
        before = len(model.bodies)
        model.status = status
        got = await post(w, body(OLD, "one"))
        assert got.status == int(status[:3])
        assert len(model.bodies) == before + 1
        assert wire.retake is not None
        assert wire.retake.calls[0].verdict.infrastructure


async def test_a_stopping_rule_ends_in_the_providers_own_shape(tmp_path: Path) -> None:
    """`--max-calls 1`: the second call is refused, nothing leaves, and the take says which rule."""
    async with world(tmp_path, {}) as w:
        model = Model()
        stage = staged(w, model)
        await stage.record()
        before = len(model.bodies)
        wire = await stage.retake(stops=Stops(max_calls=1))
        assert (await post(w, body(OLD, "one"))).status == 200
        refused = await post(w, body(OLD, "one", "hi", "two"))
        assert refused.status == 400
        assert json.loads(refused.body)["type"] == "error"
        assert "max-calls" in json.loads(refused.body)["error"]["message"]
        assert len(model.bodies) == before + 1
        assert wire.retake is not None
        assert wire.retake.tripped is not None
        assert stage.take.exchanges[-1].ended is Ending.REFUSED
        assert "max-calls" in stage.take.exchanges[-1].notes[-1]


async def test_a_model_without_an_entry_is_refused_not_guessed(tmp_path: Path) -> None:
    """A-05: `--model REQUESTED=PIN` for one of two."""
    async with world(tmp_path, {}) as w:
        model = Model()
        stage = staged(w, model)
        await stage.record()
        before = len(model.bodies)
        wire = await stage.retake(models=(f"{OLD}={NEW}",))
        assert (await post(w, body(OLD, "one"))).status == 200
        refused = await post(w, body("claude-haiku-4-5-20251001", "one"))
        assert (refused.status, b"claude-haiku-4-5-20251001" in refused.body) == (400, True)
        assert len(model.bodies) == before + 1
        assert wire.retake is not None
        assert wire.retake.refused


class Slow:
    """Credentials that come when they are let go, or never."""

    def __init__(self, why: str | None = None) -> None:
        self.why = why
        self.waiting = 0
        self.ready = asyncio.Event()

    async def apply(self, adapter: str, request: Request, content: bytes) -> Request:
        self.waiting += 1
        if self.why is not None:
            raise NoCredential(self.why)
        await self.ready.wait()
        return request

    def answered(self, status: int) -> None:
        """Nothing."""


async def test_a_bound_holds_for_calls_that_wait_for_their_credential_together(tmp_path: Path) -> None:
    """Issue 3.5: looked at again when the credential is there, or calls side by side would all pass the same bound."""
    async with world(tmp_path, {}) as w:
        model = Model()
        stage = staged(w, model)
        await stage.record()
        before, slow = len(model.bodies), Slow()
        wire = await stage.retake(stops=Stops(max_calls=1), credentials=slow)
        posts = [asyncio.create_task(post(w, body(OLD, text))) for text in ("one", "two", "three")]
        await until(lambda: slow.waiting == 3)
        slow.ready.set()
        assert sorted([(await one).status for one in posts]) == [200, 400, 400]
        assert len(model.bodies) == before + 1
        assert wire.retake is not None
        assert len(wire.retake.calls) == 1


async def test_a_call_without_its_credential_is_not_sent_and_the_take_says_so(tmp_path: Path) -> None:
    """Issue 3.8: the agent gets its provider's shape; what could not be asked is no model's answer."""
    async with world(tmp_path, {}) as w:
        model = Model()
        stage = staged(w, model)
        await stage.record()
        before = len(model.bodies)
        wire = await stage.retake(credentials=Slow("the variable KEY is not set"))
        refused = await post(w, body(OLD, "one"))
        assert (refused.status, json.loads(refused.body)["type"]) == (400, "error")
        assert len(model.bodies) == before
        assert wire.retake is not None
        assert wire.retake.refused == ["the variable KEY is not set"]


async def test_damage_under_what_is_played_is_on_the_take_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T-P7: whatever was answered is kept, and nothing stays open until the end."""
    async with world(tmp_path, {}) as w:
        stage = staged(w, Model())
        await stage.record()
        wire = await stage.retake()

        def damaged(*_: object) -> Serve:
            raise Corrupt("object ab is not what its name says")

        monkeypatch.setattr(wire, "play", damaged)
        assert (await w.get("/page")).status == 424
        (kept,) = stage.take.exchanges
        assert (kept.ended, kept.notes, kept.answer is not None) == (Ending.REFUSED, ("the recording is damaged here",), True)
        assert wire.outcome.damaged


async def test_an_agent_that_asks_on_loopback_is_sent_to_the_gateway(tmp_path: Path) -> None:
    """C-04 judges what would be reached: with a gateway that is the gateway, which a person named."""
    async with world(tmp_path, {}) as w:
        model = Model()
        stage = staged(w, model)
        await stage.record()
        before = len(model.bodies)
        await stage.retake(gateway=f"https://{HOST}:{w.origin.port}")
        client = await w.client("127.0.0.1", 9)
        content = body(OLD, "one")
        head = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:9\r\n%sContent-Length: %d\r\n\r\n" % (JSON, len(content))
        await client.send(head + content)
        assert (await client.response()).status == 200
        assert len(model.bodies) == before + 1


@pytest.mark.parametrize(("one_session", "second"), [(True, 400), (False, 200)])
async def test_one_run_is_one_session_however_long_it_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_session: bool, second: int
) -> None:
    """DESIGN 3: queues belong to a session; one `replay` is one, though its agent runs a tool for minutes without any connection."""
    monkeypatch.setattr(addon, "NEW_SESSION_AFTER_S", 0.0)
    async with world(tmp_path, {}) as w:
        stage = staged(w, Model())
        await stage.record()
        wire = await w.replay(one_session=one_session)
        assert (await post(w, body(OLD, "one"))).status == 200
        await until(lambda: not wire.handlers)
        assert (await post(w, body(OLD, "one"))).status == second


class Thinking(Model):
    """Signs what it thought, as its provider does."""

    async def messages(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
        self.bodies.append(await reader.readexactly(length))
        model = json.loads(self.bodies[-1])["model"]
        said = json.loads(answer(model, "hi").partition(b"\r\n\r\n")[2])
        said["content"].insert(0, {"type": "thinking", "thinking": "well", "signature": f"signed by {model} " + "c2ln" * 20})
        writer.write(simple(json.dumps(said).encode(), fields=JSON))


def history(*thoughts: str) -> bytes:
    """A request that hands back what was thought, and by whom it was signed."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "one"}]
    for model in thoughts:
        thought = {"type": "thinking", "thinking": "well", "signature": f"signed by {model} " + "c2ln" * 20}
        messages += [{"role": "assistant", "content": [thought, {"type": "text", "text": "hi"}]}, {"role": "user", "content": "go on"}]
    return json.dumps({"model": OLD, "max_tokens": 9, "messages": messages}).encode()


async def test_what_the_live_model_thought_stays_and_what_the_recorded_one_thought_goes(tmp_path: Path) -> None:
    """A-11, issue 3.9: foreign signatures are stripped by a named rule and recorded; the live model's own are bound to its prefix."""
    async with world(tmp_path, {}) as w:
        model = Thinking()
        stage = staged(w, model)
        await w.record()
        await post(w, history())
        wire = await stage.retake(from_step=1, strip_reasoning=True)
        for sent in (history(), history(OLD), history(OLD, NEW)):
            assert (await post(w, sent)).status == 200
        assert [body.count(b"signed by") for body in model.bodies[1:]] == [0, 1]
        assert b"signed by " + NEW.encode() in model.bodies[-1]
        assert wire.retake is not None
        assert wire.retake.refused == []
        notes = [note for exchange in stage.take.exchanges for note in exchange.notes]
        assert any("strip-thinking" in note for note in notes), notes


async def test_a_foreign_signature_is_refused_where_nobody_asked_for_it_to_go(tmp_path: Path) -> None:
    """A-11: never dropped without a word."""
    async with world(tmp_path, {}) as w:
        model = Thinking()
        stage = staged(w, model)
        await w.record()
        await post(w, history())
        await stage.retake(from_step=1)
        await post(w, history())
        refused = await post(w, history(OLD))
        assert (refused.status, b"--strip-reasoning" in refused.body, len(model.bodies)) == (400, True, 1)


BEDROCK_OLD, BEDROCK_NEW = "anthropic.claude-sonnet-4-5-20250929-v1:0", "anthropic.claude-opus-4-6-v1"
CONVERSE = b'{"messages":[{"role":"user","content":[{"text":"hi"}]}]}'
SIGNED = (
    b"AWS4-HMAC-SHA256 Credential=AKIAEXAMPLEAGENTKEY1/20261130/us-east-1/bedrock/aws4_request, "
    b"SignedHeaders=host;x-amz-date, Signature=" + b"0" * 64
)


@pytest.mark.parametrize("keys", [True, False])
async def test_a_signed_call_is_signed_anew_or_not_sent(tmp_path: Path, keys: bool) -> None:
    """A-07: the model stands in Bedrock's path, so a swap breaks the agent's signature; without keys nothing leaves."""
    seen: list[bytes] = []

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        seen.append(head)
        await reader.readexactly(len(CONVERSE))
        writer.write(simple(b'{"output":{"message":{"role":"assistant","content":[{"text":"x"}]}},"stopReason":"end_turn"}', fields=JSON))

    path = "/model/%s/converse"
    old, new = path % BEDROCK_OLD.replace(":", "%3A"), path % BEDROCK_NEW
    async with world(tmp_path, {old.encode(): script, new.encode(): script}) as w:
        stage = Stage(w, Model())
        await w.record()
        fields = JSON + b"X-Amz-Date: 20261130T000000Z\r\nAuthorization: %s\r\n" % SIGNED
        await w.get(old, method="POST", fields=fields, body=CONVERSE)
        environ = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLEOPERATOR1", "AWS_SECRET_ACCESS_KEY": "operator-secret-of-this-test"} if keys else {}
        signer = Signer(environ, redactor=w.redactor, now=lambda: datetime(2026, 12, 1, tzinfo=UTC), profiles=lambda _: None)
        wire = await stage.retake(models=(BEDROCK_NEW,), signer=signer)
        got = await w.get(old, method="POST", fields=fields, body=CONVERSE)
        assert wire.retake is not None
        if keys:
            assert got.status == 200
            assert seen[1].startswith(b"POST %s HTTP/1.1\r\n" % new.encode())
            assert b"Credential=AKIAEXAMPLEOPERATOR1/20261201/us-east-1/bedrock/aws4_request" in seen[1]
            assert "operator-secret-of-this-test" not in repr(stage.take.exchanges)
        else:
            assert (got.status, b"no credentials" in got.body) == (400, True)
            assert len(seen) == 1
            assert wire.retake.refused
