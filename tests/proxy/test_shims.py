"""What `secondtake mcp` tells the proxy of its run, and is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from secondtake.cassettes import limits
from secondtake.cassettes.casting import Casting
from secondtake.cassettes.exchange import Answered, Channel, Ending
from secondtake.cassettes.mcp import DETAIL
from secondtake.cassettes.player import Player
from secondtake.cassettes.stops import Stops
from secondtake.proxy.addon import Wire
from secondtake.proxy.policy import Mode
from secondtake.proxy.retake import Retake
from secondtake.proxy.settings import Settings
from secondtake.proxy.shims import HOST
from tests.cassettes.test_rpc import line
from tests.proxy.world import Got, MemoryWriter, World, world

HELLO, WELCOME = line(id=1, method="initialize"), line(id=1, result={})
CALL, LOG, RESULT = line(id=2, method="tools/call"), line(method="notifications/message"), line(id=2, result={"x": 1})


async def say(w: World, target: str, body: bytes) -> Got:
    """One word of a shim."""
    client = await w.plain()
    head = f"POST http://{HOST}{target} HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: {len(body)}\r\n\r\n"
    await client.send(head.encode() + body)
    got = await client.response()
    await client.close()
    return got


async def opened(w: World) -> tuple[str, str, bytes]:
    """Start a server; its session, the run's mode, and what the server says first."""
    got = await say(w, "/open", json.dumps({"name": "calc", "argv": ["calc", "--token", "sk-ant-api03-" + "a" * 40]}).encode())
    head, _, said = got.body.partition(b"\n")
    told = json.loads(head)
    return told["session"], told["mode"], said


async def recorded(w: World) -> None:
    """A session of two requests."""
    await w.record()
    session, mode, _ = await opened(w)
    assert mode == "record"
    for what, data in (("client", HELLO), ("server", WELCOME), ("client", CALL), ("server", LOG), ("server", RESULT)):
        assert (await say(w, f"/{what}?session={session}", data)).status == 200
    await say(w, f"/close?session={session}", b'{"exit": 3, "by_client": true}')


async def test_what_a_shim_says_is_kept_and_nothing_goes_out(tmp_path: Path) -> None:
    """Issue 4, item 6: one journal has one writer; DESIGN 4, secrets: the server's command passes the redactor."""
    async with world(tmp_path, {}) as w:
        await recorded(w)
        assert [(one.request.url, one.channel, one.ended) for one in sorted(w.writer.exchanges, key=lambda one: one.seq)] == [
            ("stdio://calc/", Channel.MCP, Ending.COMPLETE),
            ("stdio://calc/initialize", Channel.MCP, Ending.COMPLETE),
            ("stdio://calc/tools/call", Channel.MCP, Ending.COMPLETE),
        ]
        outcome = await w.stop()
        assert outcome is not None
        assert (outcome.requests, outcome.channels[Channel.MCP], w.origin.connections, w.resolved) == (3, 3, 0, [])
        start = next(one for one in w.writer.exchanges if one.seq == 1)
        assert "sk-ant-api03-aaaa" not in str(start.details)


async def test_it_is_played_from_the_cassette(tmp_path: Path) -> None:
    """Issue 4, item 6: and the answer says when the server has ended."""
    async with world(tmp_path, {}) as w:
        await recorded(w)
        await w.replay()
        session, mode, said = await opened(w)
        assert (mode, said) == ("replay", b"")
        assert (await say(w, f"/client?session={session}", HELLO)).body == WELCOME
        got = await say(w, f"/client?session={session}", CALL.replace(b"2,", b"9,"))
        assert [json.loads(one).get("id") for one in got.body.splitlines()] == [None, 9]
        ended = await say(w, f"/close?session={session}", b"{}")
        assert b"x-secondtake-exit: 3\r\n" in ended.head.lower() + b"\r\n"
        assert (await say(w, f"/client?session={session}", HELLO)).status == 404
        outcome = await w.stop()
        assert outcome is not None
        assert (dict(outcome.answered), outcome.misses) == ({Answered.EXACT: 2, Answered.NORMALISED: 1}, [])


async def test_a_take_keeps_what_it_played_under_its_own_numbers(tmp_path: Path) -> None:
    """ADR 6: a take is whole by itself; what a line waited for is said by the take's numbers."""
    async with world(tmp_path, {}) as w:
        await w.record()
        session, _, _ = await opened(w)
        for what, data in (("client", HELLO), ("server", WELCOME), ("server", LOG)):
            await say(w, f"/{what}?session={session}", data)
        await say(w, f"/close?session={session}", b'{"exit": 3, "by_client": true}')
        first = w.writer.cassette()
        w.writer = MemoryWriter()
        settings = Settings(Mode.RETAKE, trust=w.world_authority.ca_path)
        wire = Wire(
            settings,
            w.authority,
            redactor=w.redactor,
            now_us=w.now_us,
            now_s=lambda: 1_800_000_000,
            writer=w.writer,  # type: ignore[arg-type]  # as much of a writer as the wire uses
            player=Player(first, w.redactor),
            retake=Retake(Casting.of(("claude-opus-4-6",), allow_unpinned=True), Stops()),
        )
        await w._start(wire)
        session, mode, _ = await opened(w)
        missed = await say(w, f"/client?session={session}", line(id=5, method="tools/list"))
        assert (mode, json.loads(missed.body)["error"]["code"]) == ("retake", -32000)
        assert (await say(w, f"/client?session={session}", HELLO)).body == WELCOME + LOG
        await say(w, f"/close?session={session}", b"{}")
        await w.stop()
        kept = {one.seq: one for one in w.writer.exchanges}
        assert [(kept[seq].request.path, kept[seq].answered) for seq in sorted(kept)] == [
            (b"/", Answered.EXACT),
            (b"/tools/list", Answered.MISS),
            (b"/initialize", Answered.EXACT),
        ]
        detail = kept[1].details[DETAIL]
        assert isinstance(detail, dict)
        assert (detail["after"], detail["exit"]) == ([["ended", 3]], 3)
        await w.replay()
        session, _, _ = await opened(w)
        assert (await say(w, f"/client?session={session}", HELLO)).body == WELCOME + LOG


async def test_a_message_that_is_too_long_is_not_lost_in_silence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T-Q1: a recording that holds not what it should is not clean."""
    async with world(tmp_path, {}) as w:
        await w.record()
        session, _, _ = await opened(w)
        assert (await say(w, f"/unkept?session={session}", b"")).status == 200
        monkeypatch.setattr(limits, "MCP_LINE_BYTES", 10)
        assert (await say(w, f"/client?session={session}", b"x" * 100)).status == 413
        outcome = await w.stop()
        assert outcome is not None
        assert (len(outcome.unkept), outcome.clean) == (1, False)


async def test_a_session_that_is_not_closed_is_cut_when_the_recording_ends(tmp_path: Path) -> None:
    """T-L: what was committed stays; what is open is said to be cut."""
    async with world(tmp_path, {}) as w:
        await w.record()
        session, _, _ = await opened(w)
        await say(w, f"/client?session={session}", HELLO)
        await w.stop(0)
        assert {one.ended for one in w.writer.exchanges} == {Ending.RESET}
        assert len(w.writer.exchanges) == 2


@pytest.mark.parametrize(("target", "body", "status"), [("/open", b"[]", 400), ("/open", b"{", 400), ("/client?session=7", b"", 404)])
async def test_what_is_not_understood_is_refused(tmp_path: Path, target: str, body: bytes, status: int) -> None:
    """Anything may speak to a port on loopback."""
    async with world(tmp_path, {}) as w:
        await w.record()
        assert (await say(w, target, body)).status == status
