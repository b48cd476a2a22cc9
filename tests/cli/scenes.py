"""What the tests of the command line share: a small cassette, an origin on loopback, agents, and proxies in processes of their own."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

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


Command = Callable[..., Ran]
"""Runs one command in this process."""


def filtered(text: str, folder: Path) -> str:
    """What differs from run to run and machine to machine, by name."""
    text = text.replace(str(folder), "[DIR]")
    text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:[PORT]", text)
    text = re.sub(r"--port \d+", "--port [PORT]", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "[DIGEST]", text)
    text = re.sub(r"\b\d+(?:\.\d+)? (?:s|min)\b(?: \d\d s)?", "[TIME]", text)
    text = re.sub(r'("elapsed_us": )\d+', r"\1[TIME]", text)
    text = re.sub(r'("bytes_on_disk": )\d+', r"\1[SIZE]", text)
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


GET = (
    "import sys, urllib.request as r\nfor path in sys.argv[1:]: print(r.urlopen('https://web.example' + path, timeout=20).read().decode())"
)


class Origin(BaseHTTPRequestHandler):
    """Says hello to the path it was asked for, or how much it was sent."""

    protocol_version = "HTTP/1.1"
    asked: list[str]

    def do_GET(self) -> None:
        """Answer a GET."""
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        self._say(f"hello {self.path}")

    def do_POST(self) -> None:
        """Answer a POST."""
        self._say(f"got {len(self.rfile.read(int(self.headers['content-length'])))}")

    def _say(self, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-type", "text/plain")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def python(code: str, *arguments: str) -> tuple[str, ...]:
    """An agent: this interpreter, its own code."""
    return ("--", sys.executable, "-c", code, *arguments)


class Proxied:
    """`secondtake proxy …` in a process of its own, until it is told to stop."""

    def __init__(self, *arguments: str) -> None:
        command = [*PROGRAM, "proxy", *arguments, "--json", "-q"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1]
        self.ready = json.loads(line)

    def get(self, *paths: str) -> subprocess.CompletedProcess[str]:
        """Run a client with the environment of the ready line."""
        return subprocess.run(
            [sys.executable, "-c", GET, *paths], env={**os.environ, **self.ready["environment"]}, capture_output=True, text=True, timeout=60
        )

    def stop(self, number: int = signal.SIGINT) -> tuple[int, dict[str, Any]]:
        """Interrupt it; returns its exit code and its last line."""
        self.process.send_signal(number)
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, json.loads(out)


PROGRAM = (sys.executable, "-c", "from secondtake.cli.main import main; main()")


def environment() -> dict[str, str]:
    """The environment of a program in a process of its own: ours, and where our packages are."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
