"""Pytest fixtures of the command line: a store with a small cassette in it, and golden files of whole commands."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from secondtake.cassettes.exchange import (
    EMPTY,
    Answer,
    Body,
    Channel,
    Digest,
    Ending,
    Exchange,
    Fields,
    Named,
    Piece,
    Redaction,
    Request,
    Side,
)
from secondtake.cassettes.records import End, Head
from secondtake.cassettes.store import Store
from secondtake.cli.main import run

GOLDEN = Path(__file__).parent / "golden"
WRITING = os.environ.get("SECONDTAKE_GOLDEN") == "write"

ASK = (
    b'{"model":"hasty-20260101","max_tokens":64,"messages":[{"role":"user","content":"fix it"}],"tools":[{"name":"run","input_schema":{}}]}'
)
CALLS = b'{"id":"msg_1","type":"message","role":"assistant","model":"hasty-20260101","content":[{"type":"text","text":"I look."},\
{"type":"tool_use","id":"toolu_1","name":"run","input":{"command":"make test"}}],"stop_reason":"tool_use","usage":{}}'
PAGE = "<p>naïve \x1b]0;evil\x07 \u202etxt.exe</p>\n".encode()
BLOB = bytes(range(256)) * 4


@dataclass(frozen=True, slots=True)
class Ran:
    """What one command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty workspace, with a home and a store of its own beside it; nothing of the machine's environment decides."""
    for name in [name for name in os.environ if name.startswith("SECONDTAKE_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    workspace = tmp_path / "work"
    workspace.mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("SECONDTAKE_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(workspace)
    return workspace


@pytest.fixture
def command(here: Path, capfd: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run one command in this process."""

    def ran(*arguments: str) -> Ran:
        capfd.readouterr()
        code = run(list(arguments))
        captured = capfd.readouterr()
        return Ran(int(code), captured.out, captured.err)

    return ran


@pytest.fixture
def golden(command: Callable[..., Ran], tmp_path: Path) -> Callable[..., Ran]:
    """Compare a whole command, filtered, with `golden/NAME.txt`; SECONDTAKE_GOLDEN=write writes it."""

    def compared(name: str, *arguments: str) -> Ran:
        ran = command(*arguments)
        shown = f"$ secondtake {' '.join(arguments)}\nexit {ran.code}\n----- stdout -----\n{ran.out}----- stderr -----\n{ran.err}"
        shown = filtered(shown, tmp_path)
        path = GOLDEN / f"{name}.txt"
        if WRITING:
            GOLDEN.mkdir(exist_ok=True)
            path.write_text(shown, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == shown
        return ran

    return compared


def filtered(text: str, folder: Path) -> str:
    """What differs from run to run and machine to machine, by name."""
    text = text.replace(str(folder), "[DIR]")
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:[PORT]", text)
    text = re.sub(r"--port \d+", "--port [PORT]", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "[DIGEST]", text)
    text = re.sub(r"\b\d+(?:\.\d+)? (?:s|min)\b(?: \d\d s)?", "[TIME]", text)
    text = re.sub(r'("elapsed_us": )\d+', r"\1[TIME]", text)
    return re.sub(r"\b\d+(?:\.\d+)? KiB\b", "[SIZE]", text)


def body(data: bytes, *pieces: Piece) -> Body:
    """A reference to `data`."""
    return Body(Digest(hashlib.sha256(data).hexdigest()), len(data), pieces) if data else Body(EMPTY)


def exchange(
    seq: int, channel: Channel, request: Request, answer: Answer | None, *, ended: Ending = Ending.COMPLETE, **rest: object
) -> Exchange:
    """An exchange that began `seq` seconds into its recording and took half a second."""
    return Exchange(seq, channel, seq * 1_000_000, request, answer, ended, seq * 1_000_000 + 500_000, **rest)  # type: ignore[arg-type]


JSON: Fields = ((b"content-type", b"application/json"),)


def sample() -> list[tuple[Exchange, list[bytes]]]:
    """A model call with a tool call, a page full of tricks, a blob, and a request that got no answer."""
    key = (b"x-api-key", b"sk-_1x.key.aaaaaaaaaaaaaaaaa_")
    ask = Request(
        "POST",
        "https",
        "api.provider.example",
        443,
        b"/v1/messages",
        "HTTP/1.1",
        (*JSON, key),
        body(ASK),
        (),
        Named("api.provider.example:443"),
    )
    page = Request("GET", "https", "web.example", 443, b"/page?q=1")
    blob = Request("GET", "http", "web.example", 8080, b"/blob.bin")
    gone = Request("GET", "https", "gone.example", 443, b"/")
    hidden = Redaction(Side.REQUEST, "field:x-api-key", 0, 29, "api-key", "fp")
    return [
        (
            exchange(
                1,
                Channel.MODEL,
                ask,
                Answer(200, b"OK", fields=JSON, body=body(CALLS, Piece(len(CALLS), 200)), offset_us=100_000),
                adapter="anthropic",
                redactions=(hidden,),
            ),
            [ASK, CALLS],
        ),
        (
            exchange(
                2,
                Channel.WEB,
                page,
                Answer(
                    200, b"OK", fields=((b"Content-Type", b"text/html"), (b"X-Trick", b"\x1b[31mred")), body=body(PAGE), offset_us=1_000
                ),
                notes=("field \x1b[2Jwiped",),
            ),
            [PAGE],
        ),
        (exchange(3, Channel.WEB, blob, Answer(200, b"OK", body=body(BLOB))), [BLOB]),
        (exchange(4, Channel.WEB, gone, None, ended=Ending.RESET), []),
    ]


def keep(store: Store, name: str, exchanges: list[tuple[Exchange, list[bytes]]], **meta: object) -> str:
    """Write a closed cassette; returns its root."""
    writer = store.create(name, meta={"created": "2026-11-30T12:00:00+00:00", **meta})
    for each, bodies in exchanges:
        writer.write([Head(each.seq, each.started_us, each.channel, each.request)])
        writer.commit(End(each, {Digest(hashlib.sha256(data).hexdigest()): data for data in bodies}), lambda _error: None)
    return writer.close(meta={})


@pytest.fixture(scope="session")
def written_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a store with one cassette, to be copied: writing it waits for the disk."""
    folder = tmp_path_factory.mktemp("written") / "store"
    keep(Store(folder), "incident", sample())
    return folder


@pytest.fixture
def store(here: Path, tmp_path: Path, written_once: Path) -> Store:
    """A store with one cassette, `incident`."""
    shutil.copytree(written_once, tmp_path / "store")
    return Store(tmp_path / "store")
