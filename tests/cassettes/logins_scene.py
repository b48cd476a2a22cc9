"""A login as it is: recorded through the redactor, played, and answered again. What the tests of logins and control share."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from secondtake.cassettes.channels import classify
from secondtake.cassettes.content import plain
from secondtake.cassettes.exchange import Answer, Ending, Request
from secondtake.cassettes.logins import answer_locally
from secondtake.cassettes.match import request_keys
from secondtake.cassettes.memory import MemoryCassette, digest_of, fields
from secondtake.cassettes.misses import Miss
from secondtake.cassettes.player import Live, Player, Serve, Session
from secondtake.cassettes.recorder import Recording
from secondtake.cassettes.records import End
from secondtake.cassettes.redact import Redactor

NOW_S = 1_796_000_000
RECORDED_S = 1_700_000_000
JSON, FORM = "Content-Type: application/json", "Content-Type: application/x-www-form-urlencoded"


def ask(method: str, url: str, *head: str) -> Request:
    host, _, path = url.removeprefix("https://").partition("/")
    return Request(method, "https", host, 443, b"/" + path.encode(), fields=fields(*head))


def form(**members: str) -> bytes:
    return urlencode(members).encode()


def jwt(claims: Mapping[str, object], signature: str = "s1gnatureOfTheRealOne" * 16) -> str:
    """A token as an authority would make it: its signature is part of what must not survive."""
    head, body = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in ({"alg": "RS256"}, claims))
    return f"{head}.{body}.{signature}"


def claims_of(token: str) -> dict[str, object]:
    """As a client reads it."""
    head, body, signature = token.split(".")
    for part in (head, signature):
        base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    found = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    assert isinstance(found, dict)
    return found


@dataclass
class Scene:
    """Records with one redactor, replays with another that knows nothing: the machine of a colleague."""

    redactor: Redactor = field(default_factory=lambda: Redactor(key=b"k" * 32))
    cassette: MemoryCassette = field(default_factory=MemoryCassette)
    session: Session | None = None

    def record(self, request: Request, sent: bytes, status: int, received: bytes, *head: str) -> int:
        """As the wire records it: by its pieces, through the redactor."""
        seq = len(self.cassette.rows) + 1
        channel, adapter = classify(request, plain(sent, request.fields))
        recording = Recording(seq, seq * 1000, self.redactor, keys=request_keys)
        recording.request_head(request, channel)
        if adapter:
            recording.reclassify(channel, adapter)
        recording.request_piece(sent, 1)
        recording.request_end((), 2)
        recording.response_head(Answer(status, fields=fields(*head)))
        recording.response_piece(received, 3)
        *_, end = recording.end(Ending.COMPLETE, 4)
        assert isinstance(end, End)
        self.cassette.bodies |= end.bodies
        self.cassette.add(end.exchange)
        return seq

    def play(self, request: Request, sent: bytes = b"", *, now_s: int = NOW_S) -> Serve | Miss:
        """As a proxy answers it."""
        if self.session is None:
            self.session = Player(self.cassette, Redactor(key=b"o" * 32)).session()
        found = self.session.answer(request, Live(len(sent), digest_of(sent), sent))
        return answer_locally(request, sent, found, now_s=now_s) or found

    def body(self, request: Request, sent: bytes = b"") -> bytes:
        found = self.play(request, sent)
        assert isinstance(found, Serve), found
        return found.body.read(0, found.body.size_bytes)

    def json(self, request: Request, sent: bytes = b"") -> dict[str, object]:
        found = json.loads(self.body(request, sent))
        assert isinstance(found, dict)
        return found

    def holds(self, secret: str) -> bool:
        """Whether anything that was kept has `secret` in it."""
        kept = b"".join(self.cassette.bodies.values()) + repr(self.cassette.exchanges).encode()
        return secret.encode() in kept
