"""What of a credential is kept when it stands where it is hard to see: in what is no text, and in pieces over the events of a stream."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from secondtake.cassettes import limits
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
