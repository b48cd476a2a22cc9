"""The real curl with large files: memory, disk, resuming, ranges, slow readers, uploads."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path

import pytest

from tests.tools.scene import Scene, offline, shell, size_of, tool
from tests.tools.servers import MIB, Origin, digest_of, write_file

HOST = "files.example"
URL = f"https://{HOST}/file"

FLAT = 64 * MIB
"""What a proxy's memory may grow by, whatever the size of a body (T-I3)."""


@pytest.fixture
def curl() -> str:
    """Its path."""
    return tool("curl")


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def timed(said: str) -> dict[str, float]:
    """What curl's `-w '%{json}'` printed on the last line."""
    found: dict[str, float] = json.loads(said.splitlines()[-1])
    return found


def test_half_a_gigabyte_is_recorded_and_replayed_in_flat_memory(local: Scene, served: Origin, curl: str) -> None:
    """The issue's first line, T-I3: 500 MB; the first byte comes at once, memory grows by less than 64 MB, the digest is right."""
    got = local.root / "got"
    fetch = (curl, "-sS", "-o", str(got), "-w", "%{json}\n")
    with local.proxy("record", "big", *served.route(HOST)) as proxy:
        assert proxy.tool(*fetch, f"{URL}/1").code == 0
        before = proxy.forget_peak()
        ran = proxy.tool(*fetch, f"{URL}/500")
        assert ran.code == 0, ran.said
        grown = proxy.peak() - before
        assert digest(got) == digest_of(500)
        assert timed(ran.out)["time_starttransfer"] < 1.0
        assert grown < FLAT
        proxy.stop().clean()
    got.unlink()
    with local.proxy("replay", "big", before=offline()) as proxy:
        assert proxy.tool(*fetch, f"{URL}/1").code == 0
        before = proxy.forget_peak()
        ran = proxy.tool(*fetch, f"{URL}/500")
        assert ran.code == 0, ran.said
        grown = proxy.peak() - before
        assert digest(got) == digest_of(500)
        assert timed(ran.out)["time_starttransfer"] < 2.0
        assert grown < FLAT
        assert proxy.stop().clean()["answered"]["exact"] == 2


def test_a_slow_reader_does_not_fill_memory(local: Scene, served: Origin, curl: str) -> None:
    """T-R11: `--limit-rate`, over HTTP/1.1 (HTTP/2 with its small window: tests/proxy), in record and replay."""
    got = local.root / "got"
    fetch = (curl, "-sS", "--http1.1", "--limit-rate", "24M", "-o", str(got), f"{URL}/100")
    with local.proxy("record", "slow", *served.route(HOST)) as proxy:
        assert proxy.tool(curl, "-sS", "-o", str(got), f"{URL}/1").code == 0
        before = proxy.forget_peak()
        assert proxy.tool(*fetch).code == 0
        assert proxy.peak() - before < 32 * MIB
        proxy.stop().clean()
    with local.proxy("replay", "slow", before=offline()) as proxy:
        before = proxy.forget_peak()
        assert proxy.tool(*fetch).code == 0
        assert proxy.peak() - before < 32 * MIB
        assert digest(got) == digest_of(100)
        proxy.stop().clean()


def test_an_upload_streams_while_recording(local: Scene, served: Origin, curl: str) -> None:
    """T-R10: 300 MB go up; the origin gets them whole, and memory stays flat. The same upload is answered in replay."""
    source = local.root / "artifact"
    write_file(source, 300)
    send = (curl, "-sS", "-T", str(source), f"https://{HOST}/upload")
    with local.proxy("record", "upload", *served.route(HOST)) as proxy:
        assert proxy.tool(curl, "-sS", f"https://{HOST}/hello").code == 0
        before = proxy.forget_peak()
        ran = proxy.tool(*send)
        assert ran.code == 0, ran.said
        assert proxy.peak() - before < FLAT
        proxy.stop().clean()
    assert served.uploads[-1] == digest_of(300) == ran.out.strip()
    with local.proxy("replay", "upload", before=offline()) as proxy:
        before = proxy.forget_peak()
        again = proxy.tool(*send)
        assert again.out == ran.out
        assert proxy.peak() - before < FLAT
        proxy.stop().clean()


def test_the_same_file_asked_by_four_runs_is_stored_once(local: Scene, served: Origin, curl: str) -> None:
    """T-I5: what a further recording of a file adds is a cassette of its own (its description, one head), whatever the size of the file."""
    sizes = []
    for number in range(4):
        local.record(f"run-{number}", curl, "-sS", "-o", "/dev/null", f"{URL}/32", options=served.route(HOST)).clean()
        sizes.append(size_of(local.store))
    assert 32 * MIB <= sizes[0] < 33 * MIB
    added = [later - earlier for earlier, later in pairwise(sizes)]
    assert max(added) < 2048, added


def test_ranges_and_a_resumed_download_are_cut_from_the_whole(local: Scene, served: Origin, curl: str) -> None:
    """T-I1, T-D5: HEAD, every kind of range, If-Range right and wrong, `-C -`: all from one recorded GET."""
    whole = local.root / "whole"
    local.record("one", curl, "-sS", "-o", str(whole), f"{URL}/3", options=served.route(HOST)).clean()
    data, etag = whole.read_bytes(), '"file-3"'
    partial = local.root / "partial"
    partial.write_bytes(data[:1_000_000])
    asked = {
        "head": ["-I"],
        "first": ["-r", "0-99"],
        "last": ["-r", "-100"],
        "from": ["-r", "500-"],
        "two": ["-r", "0-0,5-9"],
        "past": ["-r", f"{len(data)}-"],
        "right": ["-r", "0-99", "-H", f"If-Range: {etag}"],
        "wrong": ["-r", "0-99", "-H", 'If-Range: "another"'],
        "same": ["-H", f"If-None-Match: {etag}"],
    }
    out = local.folder("out")
    lines = [f"curl -sS -o {out}/{name} -D {out}/{name}.head {' '.join(map(repr, words))} {URL}/3" for name, words in asked.items()]
    lines.append(f"curl -sS -C - -o {partial} {URL}/3")
    replayed = local.replay("one", *shell("\n".join(lines))).clean()
    assert replayed["answered"] == {**dict.fromkeys(replayed["answered"], 0), "derived": 10}

    def head(name: str) -> str:
        return (out / f"{name}.head").read_text().split("\n\n")[-2].lower()

    def status(name: str) -> int:
        return int(head(name).split()[1])

    def body(name: str) -> bytes:
        return (out / name).read_bytes()

    assert (status("head"), f"content-length: {len(data)}" in head("head")) == (200, True)
    assert (status("first"), body("first")) == (206, data[:100])
    assert f"content-range: bytes 0-99/{len(data)}" in head("first")
    assert (status("last"), body("last")) == (206, data[-100:])
    assert (status("from"), body("from")) == (206, data[500:])
    assert (status("two"), "multipart/byteranges" in head("two"), data[5:10] in body("two")) == (206, True, True)
    assert (status("past"), f"content-range: bytes */{len(data)}" in head("past")) == (416, True)
    assert (status("right"), body("right")) == (206, data[:100])
    assert (status("wrong"), body("wrong")) == (200, data)
    assert (status("same"), (out / "same").exists() and body("same")) in ((304, b""), (304, False))
    assert f"etag: {etag}" in head("same")
    assert partial.read_bytes() == data


def test_a_download_that_broke_off_is_not_what_replay_serves(local: Scene, served: Origin, curl: str) -> None:
    """T-I4: cut at 40 %, by the client (which a signal ends) and by the origin; each then fetched whole."""
    got = local.root / "got"
    url = f"https://{HOST}/cut/{5}"
    left = f"({curl} -sS {URL}/24 || true) 2>/dev/null | head -c {24 * MIB * 2 // 5} >/dev/null; {curl} -sS -o {got} {URL}/24"
    recorded = local.record("left", *shell(left), options=served.route(HOST))
    assert recorded.code == 0, recorded.said
    got.unlink()
    assert local.replay("left", curl, "-sS", "-o", str(got), f"{URL}/24").code == 0
    assert digest(got) == digest_of(24)
    cut = f"{curl} -sS -o {got} {url} || echo $? >{local.root}/cut; {curl} -sS -o {got} {url}"
    recorded = local.record("cut", *shell(cut), options=served.route(HOST))
    assert (local.root / "cut").read_text().strip() in {"18", "92"}
    assert [row["ended"] for row in local.rows("cut")] != ["complete", "complete"]
    got.unlink()
    replayed = local.replay("cut", curl, "-sS", "-o", str(got), url)
    assert replayed.code == 0, replayed.said
    assert digest(got) == digest_of(5)


def test_the_namespace_is_empty(local: Scene, served: Origin, curl: str) -> None:
    """What "unreachable" means here: the origin that lives on this machine's loopback is not there, nor any name server."""
    local.record("one", curl, "-sS", "-o", "/dev/null", f"{URL}/1", options=served.route(HOST)).clean()
    with local.proxy("replay", "one", before=offline()) as proxy:
        refused = proxy.tool(curl, "-sSk", "--noproxy", "*", f"https://127.0.0.1:{served.port}/hello")
        assert refused.code == 7, refused.said
        proxy.stop()
