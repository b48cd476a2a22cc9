"""A session of an MCP server as exchanges, and played from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from secondtake.cassettes.exchange import Answer, Answered, Channel, Ending, Request
from secondtake.cassettes.mcp import DETAIL, Played, Recorded
from secondtake.cassettes.memory import MemoryCassette, digest_of
from secondtake.cassettes.misses import Miss
from secondtake.cassettes.player import Live, Player, Serve, Session
from tests.cassettes.test_rpc import line


@dataclass
class Kept:
    """An exchange on its way into a cassette in memory."""

    request: Request
    content: bytes
    answer: Answer
    seq: int
    lines: list[bytes] = field(default_factory=list)
    ended: Ending | None = None
    detail: Mapping[str, object] = field(default_factory=dict)

    def line(self, data: bytes) -> None:
        self.lines.append(data)

    def end(self, how: Ending, detail: Mapping[str, object]) -> None:
        assert self.ended is None
        self.ended, self.detail = how, detail


@dataclass
class Scene:
    """A live session, written down."""

    cassette: MemoryCassette = field(default_factory=MemoryCassette)
    kept: list[Kept] = field(default_factory=list)

    def begin(self, request: Request, content: bytes, answer: Answer) -> Kept:
        self.kept.append(Kept(request, content, answer, len(self.kept) + 1))
        return self.kept[-1]

    def record(self, *script: tuple[str, bytes], exit_code: int = 0, by_client: bool = True) -> Scene:
        session = Recorded("calc", ["calc", "--x"], self.begin)
        for side, data in script:
            (session.client if side == ">" else session.server)(data)
        session.close(exit_code, by_client=by_client)
        for one in self.kept:
            assert one.ended is not None
            details = {DETAIL: one.detail} if one.detail else {}
            self.cassette.record(
                one.request,
                one.answer,
                sent=one.content,
                received=b"".join(one.lines),
                channel=Channel.MCP,
                ended=one.ended,
                details=details,
            )
        return self

    def play(self) -> Playing:
        return Playing(self.cassette, Player(self.cassette).session())


class Playing:
    """A session from the cassette, with what was missed."""

    def __init__(self, cassette: MemoryCassette, session: Session) -> None:
        self.misses: list[Miss] = []
        self.how: list[Answered] = []
        self._session = session
        self.played = Played("calc", self._ask, session.request_content)
        self.opened = self.played.opened()

    def _ask(self, request: Request, content: bytes, *, needed: bool) -> Serve | Miss:
        found = self._session.answer(request, Live(len(content), digest_of(content), content))
        if isinstance(found, Serve):
            self.how.append(found.answered)
        elif needed:
            self.misses.append(found)
        return found

    def say(self, data: bytes) -> list[bytes]:
        return self.played.client(data)


HELLO, READY = line(id=0, method="initialize"), line(method="notifications/initialized")
CALL = line(id=1, method="tools/call", params={"name": "add", "_meta": {"progressToken": 1}})
PROGRESS = line(method="notifications/progress", params={"progressToken": 1, "progress": 1})


def test_each_message_of_the_client_is_an_exchange_with_what_answers_it() -> None:
    """Issue 4, item 6: so show, grep, events and misses all work."""
    log, welcome, result = line(method="notifications/message"), line(id=0, result={}), line(id=1, result={"x": 3})
    scene = Scene().record((">", HELLO), ("<", welcome), (">", READY), ("<", log), (">", CALL), ("<", PROGRESS), ("<", log), ("<", result))
    assert [(one.request.method, one.request.url, one.lines) for one in scene.kept] == [
        ("START", "stdio://calc/", [log]),
        ("POST", "stdio://calc/initialize", [welcome]),
        ("POST", "stdio://calc/notifications/initialized", []),
        ("POST", "stdio://calc/tools/call", [PROGRESS, log, result]),
    ]
    assert scene.cassette.exchange(1).details[DETAIL] == {"argv": ["calc", "--x"], "after": [["heard", 3]], "exit": 0}


def test_the_same_client_is_told_the_same_bytes() -> None:
    """Issue 4, item 6: responses, notifications and the server's own requests in order relative to what triggered them."""
    banner, log, welcome = b"Server ready\n", line(method="notifications/message"), line(id=0, result={})
    changed = line(method="notifications/tools/list_changed")
    ask, result = line(id=0, method="sampling/createMessage"), line(id=1, result={"x": 3})
    reply = line(id=0, result={"text": "yes"})
    script = [
        ("<", banner), (">", HELLO), ("<", welcome), (">", READY), ("<", log), (">", CALL), ("<", PROGRESS), ("<", ask),
        (">", reply), ("<", result), ("<", changed),
    ]  # fmt: skip
    playing = Scene().record(*script, exit_code=3).play()
    assert playing.opened == [banner]
    assert playing.say(HELLO) == [welcome]
    assert playing.say(READY) == [log]
    assert playing.say(CALL) == [PROGRESS, ask]
    assert playing.say(reply) == [result, changed]
    assert playing.played.exit is None
    playing.played.closed()
    assert playing.played.exit == 3
    assert playing.how == [Answered.EXACT] * 5


def test_other_ids_and_another_order_are_answered_each_with_its_own() -> None:
    """Issue 4, item 6: ids are client-made; progress tokens too."""
    calls = [line(id=n, method="tools/call", params={"n": n % 2, "_meta": {"progressToken": f"t{n}"}}) for n in (2, 3, 12, 13)]
    told = [line(method="notifications/progress", params={"progressToken": f"t{n}"}) for n in (2, 3, 12, 13)]
    results = [line(id=n, result=n % 2) for n in (2, 3, 12, 13)]
    script = [(">", calls[0]), (">", calls[1]), ("<", told[1]), ("<", told[0]), ("<", results[1]), ("<", results[0])]
    playing = Scene().record(*script).play()
    said = playing.say(calls[3]) + playing.say(calls[2])
    assert [one.replace(b" ", b"") for one in (told[3], results[3], told[2], results[2])] == said
    assert playing.how == [Answered.EXACT, Answered.NORMALISED, Answered.NORMALISED]


def test_a_request_that_was_not_recorded_is_an_error_that_names_the_nearest() -> None:
    """Issue 4, item 6: code -32000, the message names the nearest; and a miss of the run."""
    playing = Scene().record((">", CALL), ("<", line(id=1, result={}))).play()
    [said] = playing.say(line(id=7, method="tools/call", params={"name": "sub"}))
    assert said.startswith(b'{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"secondtake: replay: POST stdio://calc/tools/call')
    assert b"differs at body `params.name`" in said
    assert len(playing.misses) == 1


def test_another_reply_to_the_server_ends_what_waits_for_it() -> None:
    """DESIGN 3: nothing is approximated silently: what follows another reply was not recorded."""
    ask = line(id="s", method="elicitation/create")
    playing = Scene().record((">", CALL), ("<", ask), (">", line(id="s", result=1)), ("<", line(id=1, result={}))).play()
    assert playing.say(CALL) == [ask]
    [said] = playing.say(line(id="s", result=2))
    assert b'"id":1,"error"' in said
    assert [miss.nearest.differences[0].path for miss in playing.misses if miss.nearest] == ["result"]


def test_a_notification_that_a_client_sends_by_the_clock_is_no_miss() -> None:
    """Cancellations and progress come when they come."""
    playing = Scene().record((">", HELLO), ("<", line(id=0, result={}))).play()
    assert playing.say(line(method="notifications/cancelled", params={"requestId": 4})) == []
    assert playing.misses == []
    playing.say(line(method="notifications/roots/list_changed"))
    assert len(playing.misses) == 1


def test_a_server_that_ended_by_itself_ends_at_the_same_place() -> None:
    """Issue 4, item 6: exit code as the recorded server's."""
    playing = Scene().record((">", HELLO), ("<", line(id=0, result={})), (">", CALL), exit_code=139, by_client=False).play()
    playing.say(HELLO)
    assert playing.played.exit is None
    assert playing.say(CALL) == []
    assert playing.played.exit == 139


def test_a_request_that_never_got_an_answer_gets_none() -> None:
    """The client gave up on it then."""
    scene = Scene().record((">", CALL), ("<", PROGRESS))
    assert [one.ended for one in scene.kept] == [Ending.COMPLETE, Ending.CLIENT_LEFT]
    assert scene.play().say(CALL) == [PROGRESS]


def test_a_server_that_was_not_started_then_is_a_miss_and_ends_at_once() -> None:
    """Fail closed: nothing is started in its place."""
    playing = Playing(MemoryCassette(), Player(MemoryCassette()).session())
    assert (playing.opened, playing.played.exit, len(playing.misses)) == ([], 1, 1)


@pytest.mark.parametrize("detail", [{}, {"after": 3, "exit": "x"}, {"after": [[1], None, ["heard", "x"]], "exit": 99999, "ended_after": 7}])
def test_a_strange_recording_plays_somehow(detail: dict[str, object]) -> None:
    """Untrusted is the default: what a cassette says of itself is checked."""
    cassette = MemoryCassette()
    start = Request("START", "stdio", "calc", 0, b"/")
    cassette.record(start, Answer(200), received=b"a\nb\n", channel=Channel.MCP, details={DETAIL: detail})
    playing = Playing(cassette, Player(cassette).session())
    assert playing.opened == [b"a\n", b"b\n"]
    playing.played.closed()
    assert playing.played.exit == 0
