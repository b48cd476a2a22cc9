"""A session of an MCP server over standard input and output, as exchanges; and such exchanges played as a session. Pure.

One exchange per message of the client, as if it were posted: `POST stdio://NAME/tools/call`. Its answer is every line of the server that
belongs to it: progress under its token, whatever else the server says while it is the latest that waits, the reply last. A notification or
a reply of the client is answered 202, with nothing. What the server says beside that belongs to the session itself, an exchange that is
open from start to end: `START stdio://NAME/`.

Played, each line waits for what it waited for then: a line of an answer for the client's replies to the server's own requests (sampling,
roots, elicitation) that had come before it; a line of the session for the message that had come last, or the reply that had.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from secondtake.cassettes.canonical import Json
from secondtake.cassettes.exchange import Answer, Ending, Fields, Named, Request, Source
from secondtake.cassettes.misses import Miss, printable
from secondtake.cassettes.rpc import CANCELLED, PROGRESS, Kind, Name, Said, error, read, renamed, renames
from secondtake.cassettes.served import Serve

SCHEME = "stdio"
START = "START"
DETAIL = "mcp"
"""Where `Exchange.details` keeps what a line waits for, and how the server ended."""

LINES: Fields = ((b"content-type", b"application/x-ndjson"),)
MESSAGE: Fields = ((b"content-type", b"application/json"),)

OPEN_REQUESTS = 10_000
"""Requests of one session that wait at the same time; a further one is answered as if it were a notification."""

SESSION_LINES = 100_000
"""Lines of a session itself whose moment is kept; later ones are said with the last of these."""


def start_request(name: str) -> Request:
    """The exchange of a whole session."""
    return Request(START, SCHEME, name, 0, b"/", named=Named(host=name))


def message_request(name: str, path: str) -> Request:
    """The exchange of one message of the client."""
    safe = re.sub(r"[^A-Za-z0-9._~!$&'()*+,;=:@/-]", "-", path)[:200]
    return Request("POST", SCHEME, name, 0, b"/" + safe.encode("ascii"), fields=MESSAGE, named=Named(host=name))


ANSWERED = Answer(200, b"OK", fields=LINES)
ACCEPTED = Answer(202, b"Accepted")


# --- recording


class Keeper(Protocol):
    """One exchange that is being kept."""

    def line(self, data: bytes) -> None:
        """The server said this."""
        ...

    def end(self, how: Ending, detail: Mapping[str, object]) -> None:
        """It is whole, or will never be."""
        ...

    @property
    def seq(self) -> int: ...


type Begin = Callable[[Request, bytes, Answer], Keeper]
"""Begins to keep an exchange: its request, the request's body, the head of its answer."""


@dataclass(slots=True)
class _Open:
    keeper: Keeper
    name: Name
    token: Name | None
    replies: list[Json] = field(default_factory=list)
    """Requests of the server, said in its answer, that the client has replied to, in the order of the replies."""
    waits: list[int] = field(default_factory=list)
    """For each line of its answer, how many of these had come by then."""


class Recorded:
    """One live session. What comes from either side is told before it is passed on."""

    def __init__(self, name: str, argv: Sequence[str], begin: Begin) -> None:
        self._name = name
        self._begin = begin
        self._open: dict[Name, _Open] = {}
        self._asked: dict[Name, tuple[str, _Open | None]] = {}
        """Requests of the server that wait for the client: by which method, and in which answer."""
        self._session = begin(start_request(name), b"", ANSWERED)
        self._argv = [printable(word, 1000) for word in argv]
        self._last: tuple[str, int] | None = None
        self._after: list[list[object]] = []
        self._closed = False

    def client(self, data: bytes) -> None:
        """A line of the client."""
        said = read(data)
        if said.kind is Kind.REQUEST and said.name is not None and said.name not in self._open and len(self._open) < OPEN_REQUESTS:
            keeper = self._begin(message_request(self._name, said.method), data, ANSWERED)
            self._open[said.name] = _Open(keeper, said.name, said.token)
        else:
            path = said.method
            if said.kind is Kind.REPLY and said.name is not None:
                method, owner = self._asked.pop(said.name, ("", None))
                path = f"reply/{method}"
                if owner is not None:
                    owner.replies.append(said.name[1])
            keeper = self._begin(message_request(self._name, path), data, ACCEPTED)
            keeper.end(Ending.COMPLETE, {})
        self._last = ("heard", keeper.seq)

    def server(self, data: bytes) -> None:
        """A line of the server."""
        said = read(data)
        of = self._belongs(said)
        if said.kind is Kind.REQUEST and said.name is not None and len(self._asked) < OPEN_REQUESTS:
            self._asked[said.name] = said.method, of
        if of is None:
            self._session.line(data)
            if len(self._after) < SESSION_LINES:
                self._after.append(list(self._last) if self._last is not None else [])
            return
        of.keeper.line(data)
        of.waits.append(len(of.replies))
        if said.kind is Kind.REPLY:
            del self._open[of.name]
            self._end(of, Ending.COMPLETE)
            self._last = ("ended", of.keeper.seq)

    def _belongs(self, said: Said) -> _Open | None:
        """The open request a line of the server is about."""
        if said.kind is Kind.REPLY:
            return self._open.get(said.name) if said.name is not None else None
        if said.method == PROGRESS:
            return next((one for one in self._open.values() if one.token is not None and one.token == said.token), None)
        return next(reversed(self._open.values()), None)

    def _end(self, one: _Open, how: Ending) -> None:
        detail: dict[str, object] = {"waits": list(one.waits), "replies": list(one.replies)} if one.replies else {}
        one.keeper.end(how, detail)

    def close(self, exit_code: int | None, *, by_client: bool) -> None:
        """The server is gone, by itself or because the client was. `exit_code` is its status, 128 + n after signal n."""
        if self._closed:
            return
        self._closed = True
        for one in self._open.values():
            self._end(one, Ending.CLIENT_LEFT if by_client else Ending.RESET)
        detail: dict[str, object] = {"argv": self._argv, "after": self._after, "exit": exit_code}
        if not by_client:
            detail["ended_after"] = list(self._last) if self._last is not None else []
        self._session.end(Ending.COMPLETE, detail)


# --- playing


class Ask(Protocol):
    """How a session asks the cassette. What it counts and keeps of it is its own affair."""

    def __call__(self, request: Request, content: bytes, *, needed: bool) -> Serve | Miss:
        """`needed` is false for what a client may leave out or say more often: then a miss is none."""
        ...


@dataclass(slots=True)
class _Track:
    """The lines of one answer, and how far they are said."""

    lines: list[bytes]
    waits: list[int]
    replies: list[Json]
    by: Mapping[Name, Json]
    live: Name | None
    seq: int
    at: int = 0

    def awaits(self) -> list[Json]:
        """The replies its next line waits for."""
        return self.replies[: self.waits[self.at]] if self.at < len(self.waits) else []


class Played:
    """One session from the cassette."""

    def __init__(self, name: str, ask: Ask, recorded: Callable[[int], bytes | None]) -> None:
        """`recorded` gives the body of a recorded request."""
        self._name = name
        self._ask = ask
        self._recorded = recorded
        self._tracks: list[_Track] = []
        self._replies: list[Json] = []
        self._past: set[tuple[str, int]] = set()
        self._asked: dict[Name, str] = {}
        self._lines: list[bytes] = []
        self._at = 0
        self._after: list[tuple[str, int] | None] = []
        self._ended_after: tuple[str, int] | None = None
        self._ends_by_itself = False
        self.exit: int | None = None
        """The server's status, once it has ended."""
        self._status = 0

    def opened(self) -> list[bytes]:
        """Start it. Where no recorded session is left, everything is a miss, and it says nothing."""
        found = self._ask(start_request(self._name), b"", needed=True)
        if isinstance(found, Miss):
            self.exit = 1
            return []
        detail = _detail(found)
        self._lines = _lines(found.body)
        self._after = _moments(detail.get("after"), len(self._lines))
        status = detail.get("exit")
        self._status = status if isinstance(status, int) and 0 <= status < 256 else 0
        if (by_itself := detail.get("ended_after")) is not None:
            self._ends_by_itself = True
            self._ended_after = _moment(by_itself)
        return self._further()

    def client(self, data: bytes) -> list[bytes]:
        """What the server says to a line of the client."""
        said = read(data)
        match said.kind:
            case Kind.REQUEST:
                return [*self._requested(said), *self._further()]
            case Kind.REPLY:
                return [*self._replied(said), *self._further()]
            case _:
                needed = said.method not in (CANCELLED, PROGRESS)
                found = self._ask(message_request(self._name, said.method), data, needed=needed)
                if isinstance(found, Serve):
                    self._past.add(("heard", found.seq))
                    return [*_lines(found.body), *self._further()]
                return self._further()

    def closed(self) -> list[bytes]:
        """The client is gone; what is left is not said."""
        self.exit = self._status if self.exit is None else self.exit
        return []

    def _requested(self, said: Said) -> list[bytes]:
        found = self._ask(message_request(self._name, said.method), said.data, needed=True)
        if isinstance(found, Miss):
            return [error(said.name, f"secondtake: {found.message}", kind=str(found.kind))]
        self._past.add(("heard", found.seq))
        lines, detail = _lines(found.body), _detail(found)
        waits, replies = detail.get("waits"), detail.get("replies")
        counts = [one if isinstance(one, int) else 0 for one in waits] if isinstance(waits, list) else []
        by = renames(self._recorded(found.seq) or b"", said.data)
        names: list[Json] = [one for one in replies if isinstance(one, str | int | float)] if isinstance(replies, list) else []
        self._tracks.append(_Track(lines, counts[: len(lines)], names, by, said.name, found.seq))
        return []

    def _replied(self, said: Said) -> list[bytes]:
        """The client answers a request of the server's: what it waits for goes on, or is an error where the answer is another."""
        method = self._asked.pop(said.name, "") if said.name is not None else ""
        found = self._ask(message_request(self._name, f"reply/{method}"), said.data, needed=True)
        name = said.name[1] if said.name is not None else None
        if isinstance(found, Serve):
            self._past.add(("heard", found.seq))
            self._replies.append(name)
            return []
        out = []
        for track in [one for one in self._tracks if name in one.replies]:
            self._tracks.remove(track)
            out.append(error(track.live, f"secondtake: {found.message}", kind=str(found.kind)))
        return out

    def _further(self) -> list[bytes]:
        """Say all that waits for nothing any more."""
        out: list[bytes] = []
        moved = True
        while moved:
            moved = False
            for track in list(self._tracks):
                while track.at < len(track.lines) and all(reply in self._replies for reply in track.awaits()):
                    out.append(self._say(renamed(track.lines[track.at], track.by)))
                    track.at += 1
                    moved = True
                if track.at >= len(track.lines):
                    self._tracks.remove(track)
                    self._past.add(("ended", track.seq))
                    moved = True
            while self._at < len(self._lines) and (self._after[self._at] is None or self._after[self._at] in self._past):
                out.append(self._say(self._lines[self._at]))
                self._at += 1
                moved = True
        if self._ends_by_itself and self._at == len(self._lines) and (self._ended_after is None or self._ended_after in self._past):
            self.exit = self._status
        return out

    def _say(self, line: bytes) -> bytes:
        said = read(line)
        if said.kind is Kind.REQUEST and said.name is not None:
            self._asked[said.name] = said.method
        return line if line.endswith(b"\n") else line + b"\n"


def _lines(body: Source) -> list[bytes]:
    whole = body.read(0, body.size_bytes).split(b"\n") if body.size_bytes else [b""]
    return [line + b"\n" for line in whole[:-1]] + ([whole[-1]] if whole[-1] else [])


def _detail(found: Serve) -> Mapping[str, object]:
    detail = (found.details or {}).get(DETAIL)
    return detail if isinstance(detail, Mapping) else {}


def _moment(value: object) -> tuple[str, int] | None:
    match value:
        case [str() as what, int() as seq]:
            return what, seq
        case _:
            return None


def _moments(value: object, size: int) -> list[tuple[str, int] | None]:
    found = [_moment(one) for one in value[:size]] if isinstance(value, list) else []
    return found + [found[-1] if found else None] * (size - len(found))
