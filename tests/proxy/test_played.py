"""Large bodies are checked before they are played, and nobody else waits for that."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from pathlib import Path

import h2.events
import pytest

from secondtake.cassettes import objects
from secondtake.cassettes.exchange import Bytes, Digest, Source
from secondtake.cassettes.files import DiskFiles, Region
from secondtake.cassettes.memory import MemoryCassette
from secondtake.proxy.policy import Pace
from tests.proxy.world import HOST, World, reply, simple, world

LARGE = bytes(range(256)) * 4096


class Slow:
    """A large object that takes as long to be checked as a test wants."""

    def __init__(self, data: bytes) -> None:
        self.data = Bytes(data)
        self.unchecked = True
        self.began = threading.Event()
        self.go_on = threading.Event()

    @property
    def size_bytes(self) -> int:
        return self.data.size_bytes

    def check(self) -> None:
        self.began.set()
        assert self.go_on.wait(20)
        self.unchecked = False

    def read(self, offset: int, size: int) -> bytes:
        assert not self.unchecked, "read before it was checked: that would hold the loop"
        return self.data.read(offset, size)


def instead(w: World, of: bytes, found: Callable[[], Source]) -> None:
    """In replay the body `of` is read from something else."""
    made = w.writer.cassette

    def cassette() -> MemoryCassette:
        real = made()
        body = real.body
        real.body = lambda asked: found() if asked.digest == hashlib.sha256(of).hexdigest() else body(asked)  # type: ignore[assignment,method-assign]
        return real

    w.writer.cassette = cassette  # type: ignore[method-assign]


@pytest.mark.parametrize("pace", [Pace.FAST, Pace.REAL])
@pytest.mark.parametrize("field", [b"", b"Range: bytes=5-9\r\n"])
async def test_others_are_answered_while_a_large_body_is_checked(tmp_path: Path, pace: Pace, field: bytes) -> None:
    """Issue 2: neither another connection, nor another stream of the same one, waits; a part of it is checked as the whole is."""
    async with world(tmp_path, {b"/large": reply(simple(LARGE, fields=b'ETag: "1"\r\n')), b"/small": reply(simple(b"small"))}) as w:
        await w.record()
        await w.get("/large")
        await w.get("/small")
        slow = Slow(LARGE)
        instead(w, LARGE, lambda: slow)
        await w.replay(pace=pace)
        client = await w.h2()
        fields = ((b"range", b"bytes=5-9"),) if field else ()
        stream = await client.request("/large", fields=fields)
        try:
            while not slow.began.is_set():
                other = await client.request("/small")
                await client.finished(other)
            assert (await w.get("/small")).body == b"small"
            assert not client.of(stream, h2.events.DataReceived)
        finally:
            slow.go_on.set()
        await client.finished(stream)
        assert client.body(stream) == (LARGE[5:10] if field else LARGE)


async def test_a_damaged_large_body_is_never_given_as_whole(tmp_path: Path) -> None:
    """DESIGN 4, damage is an error: cut, and told; not one byte of it, and no end."""
    async with world(tmp_path, {b"/large": reply(simple(LARGE))}) as w:
        await w.record()
        await w.get("/large")
        path = tmp_path / "object"
        path.write_bytes(LARGE[:-1] + b"?")
        files = DiskFiles()
        digest = Digest(hashlib.sha256(LARGE).hexdigest())
        region = Region(files, files.open_read(tmp_path, ("object",)), 0, len(LARGE))
        checked: set[Digest] = set()
        instead(w, LARGE, lambda: objects.open_object(region, digest, packed=False, size_bytes=len(LARGE), checked=checked))
        wire = await w.replay()
        got = await w.raw(b"GET /large HTTP/1.1\r\nHost: %s\r\n\r\n" % HOST.encode())
        assert (got.ended, got.body) == ("reset", b"")
        assert len(wire.outcome.damaged) == 1
        assert not wire.outcome.clean
        assert checked == set()
