"""What of a credential is kept when it stands where it is hard to see: in what is no text, and in pieces over the events of a stream."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path

import pytest

from secondtake.cassettes import limits
from secondtake.cassettes.exchange import Answered
from tests.proxy.world import World, reply, simple, world

KEY = b"sk-ant-api03-R2D2c3poBB8xyzQm9vS2VlcGVyMTIzNDU2Nzg5MGFiY2RlZg-AA"


def kept(w: World) -> bytes:
    """Everything that was kept, heads too."""
    return b"\n".join([*w.writer.bodies.values(), repr(w.writer.exchanges).encode()])


@pytest.mark.parametrize("size", [100_000, limits.BODY_IN_MEMORY_BYTES + 100_000])
async def test_a_key_of_this_run_in_an_image_is_not_kept(tmp_path: Path, size: int) -> None:
    """T-K1: 64 bytes that stand in an image are no coincidence. The agent gets the image; what is kept has a placeholder and says so."""
    image = b"\x89PNG\r\n\x1a\n" + gzip.compress(bytes(range(256))) * (size // 300) + KEY + b"\x00\xff"
    field = b"Content-Type: image/png\r\n"
    async with world(tmp_path, {b"/image": reply(simple(image, fields=field)), b"/asked": reply(simple(b"ok"))}) as w:
        await w.record()
        await w.get("/asked", fields=b"x-api-key: " + KEY + b"\r\n")
        assert (await w.get("/image")).body == image
        assert KEY not in kept(w)
        exchange = w.writer.exchanges[1]
        assert [one.place for one in exchange.redactions] == ["binary"]
        assert any("holds a credential" in note for note in exchange.notes)
        await w.replay()
        played = (await w.get("/image")).body
        at = image.index(KEY)
        assert (played[:at], played[at + len(KEY) :]) == (image[:at], image[at + len(KEY) :])


@pytest.mark.parametrize("http2", [False, True])
async def test_a_key_that_a_model_spells_out_is_not_kept(tmp_path: Path, http2: bool) -> None:
    """DESIGN 4, across stream deltas: the agent gets every token as it came, and so many; kept is a placeholder in as many pieces.

    In replay the agent quotes the placeholder where it quoted the key, and its next request is the recorded one.
    """
    pieces = ["Key: ", *(KEY.decode()[at : at + 6] for at in range(0, len(KEY), 6)), "."]
    events = [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": piece}} for piece in pieces]
    stream = [b"event: content_block_delta\ndata: " + json.dumps(event).encode() + b"\n\n" for event in events]

    async def speak(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter, _head: bytes) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for event in stream:
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            await writer.drain()
            await asyncio.sleep(0.002)
        writer.write(b"0\r\n\r\n")

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0]))
        writer.write(simple(b"ok"))

    async def say(w: World) -> str:
        """Ask, put the answer together, and quote it in a further request."""
        field = (b"x-api-key", KEY)
        if http2:
            client = await w.h2()
            number = await client.request("/v1/messages", fields=(field,))
            await client.finished(number)
            body = client.body(number)
        else:
            body = (await w.get("/v1/messages", fields=b"%s: %s\r\n" % field)).body
        text = "".join(json.loads(line[6:])["delta"]["text"] for line in body.splitlines() if line.startswith(b"data: "))
        quoted = json.dumps({"messages": [{"role": "assistant", "content": text}]}).encode()
        assert (await w.get("/next", method="POST", fields=b"Content-Type: application/json\r\n", body=quoted)).body == b"ok"
        return text

    async with world(tmp_path, {b"/v1/messages": speak, b"/next": take}) as w:
        await w.record()
        assert await say(w) == f"Key: {KEY.decode()}."
        answer = w.writer.exchanges[0].answer
        assert answer is not None
        body = w.writer.bodies[answer.body.digest]
        assert [piece.size_bytes for piece in answer.body.pieces] == [len(event) for event in stream]
        assert not any(piece.encode() in body for piece in pieces[3:-1])
        assert {one.place for one in w.writer.exchanges[0].redactions} == {"field:x-api-key", "deltas"}
        wire = await w.replay()
        played = await say(w)
        assert len(played) == len(KEY) + 6
        assert "_2T." in played
        assert wire.outcome.answered[Answered.MISS] == 0
