"""Last resorts: labelled, and only where they are meant."""

from __future__ import annotations

import json

from secondtake.cassettes.exchange import Answer, Answered, Channel, Request
from secondtake.cassettes.memory import MemoryCassette, digest_of, fields
from secondtake.cassettes.misses import Miss, MissKind
from secondtake.cassettes.player import Live, Options, Player, Serve, Session


def ask(path: str, *head: str, method: str = "POST", host: str = "h.example") -> Request:
    return Request(method, "https", host, 443, path.encode(), fields=fields("Content-Type: application/json", *head))


def send(session: Session, request: Request, content: bytes = b"") -> Serve | Miss:
    return session.answer(request, Live(len(content), digest_of(content), content))


def served(found: Serve | Miss) -> Serve:
    assert isinstance(found, Serve), found
    return found


def test_telemetry_gets_the_recorded_answer_of_its_endpoint_however_often() -> None:
    """T-O3: never a miss, no retry storm, never unplayed."""
    cassette = MemoryCassette()
    path = "/api/event_logging/v2/batch"
    cassette.record(ask(path), Answer(503), sent=b'{"events":[0]}', channel=Channel.TELEMETRY)
    cassette.record(ask(path), Answer(202), sent=b'{"events":[1]}', channel=Channel.TELEMETRY)
    session = Player(cassette).session()
    found = [served(send(session, ask(path), b'{"events":[%d]}' % n)) for n in range(10, 20)]
    assert {(one.answer.status, one.answered) for one in found} == {(202, Answered.LOCAL)}
    assert session.unplayed() == []
    assert isinstance(send(session, ask("/api/event_logging/batch"), b"{}"), Miss)


def test_a_login_gets_the_recorded_answer_of_its_endpoint() -> None:
    """DESIGN 3: answered locally, whatever the refresh token is now."""
    cassette = MemoryCassette()
    cassette.record(ask("/oauth/token"), Answer(200), sent=b'{"refresh_token":"a"}', received=b"{}", channel=Channel.AUTH)
    session = Player(cassette).session()
    found = served(send(session, ask("/oauth/token"), b'{"refresh_token":"b","scope":"x"}'))
    assert (found.answered, found.notes) == (Answered.LOCAL, ("answered as auth of exchange 1, whatever was sent",))


def call(*texts: str) -> bytes:
    return json.dumps({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": text} for text in texts]}).encode()


def conversation() -> MemoryCassette:
    cassette = MemoryCassette()
    for turns in (("a",), ("a", "b"), ("a", "b", "c")):
        cassette.record(ask("/v1/messages"), Answer(200), sent=call(*turns), received=turns[-1].encode(), channel=Channel.MODEL)
    return cassette


def test_a_model_call_is_placed_by_its_turn_only_when_asked_and_says_what_differs() -> None:
    """DESIGN 3: never approximated silently."""
    refusing = Player(conversation()).session()
    found = send(refusing, ask("/v1/messages"), call("a", "CHANGED"))
    assert isinstance(found, Miss)
    assert found.kind is MissKind.MODEL_DIVERGED
    placing = Player(conversation(), options=Options(positional=True)).session()
    placed = served(send(placing, ask("/v1/messages"), call("a", "CHANGED")))
    assert (placed.seq, placed.answered, placed.body.read(0, 9)) == (2, Answered.POSITIONAL, b"b")
    assert placed.notes == ("differs at body `messages[1].content`",)
    assert served(send(placing, ask("/v1/messages"), call("a"))).answered is Answered.EXACT
    assert isinstance(send(placing, ask("/v1/messages"), call("a", "again")), Miss)


WHEEL = "/packages/aa/demo_pkg-1.0-py3-none-any.whl"


def test_a_new_file_of_a_known_package_has_a_class_of_its_own() -> None:
    """T-N4, DESIGN 3."""
    cassette = MemoryCassette()
    cassette.record(ask("/simple/demo-pkg/", method="GET"), Answer(200), received=b"page", channel=Channel.INDEX)
    session = Player(cassette).session()

    def kind(path: str, host: str = "h.example") -> MissKind:
        found = send(session, ask(path, method="GET", host=host))
        assert isinstance(found, Miss)
        return found.kind

    assert kind(WHEEL) is MissKind.KNOWN_INDEX_NEW_FILE
    assert kind(WHEEL, "files.example") is MissKind.KNOWN_INDEX_NEW_FILE
    assert kind(WHEEL.replace("demo_pkg", "other")) is MissKind.NEW_RESOURCE
    assert kind("/simple/other/") is MissKind.NEW_RESOURCE


def test_a_package_that_was_never_recorded_is_a_new_resource_and_says_it_was_not_recorded() -> None:
    """T-N4."""
    cassette = MemoryCassette()
    cassette.record(ask("/simple/demo/", method="GET"), Answer(200), channel=Channel.INDEX)
    found = send(Player(cassette).session(), ask("/simple/nope/", method="GET"))
    assert isinstance(found, Miss)
    assert (found.kind, found.channel) == (MissKind.NEW_RESOURCE, Channel.INDEX)
    assert found.message.startswith("replay: GET https://h.example/simple/nope/: not recorded")


def test_every_kind_of_index_records_and_replays_once() -> None:
    """T-N8: full and abbreviated packument, cargo, Go, tarballs."""
    cassette = MemoryCassette()
    requests = [
        Request("GET", "https", "h.example", 443, path, fields=fields(*head))
        for path, head in (
            (b"/lodash", ("Accept: application/json", "npm-command: install")),
            (b"/lodash", ("Accept: application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*",)),
            (b"/@babel%2fcore", ("Accept: application/vnd.npm.install-v1+json",)),
            (b"/lodash/-/lodash-4.17.21.tgz", ("Accept: */*",)),
            (b"/se/rd/serde", ("User-Agent: cargo/1.95",)),
            (b"/api/v1/crates/serde/1.0.0/download", ()),
            (b"/github.com/a/b/@v/list", ()),
            (b"/github.com/a/b/@v/v1.0.0.zip", ()),
        )
    ]
    for number, request in enumerate(requests):
        cassette.record(
            request, Answer(200, fields=fields("Content-Type: application/json")), received=b"%d" % number, channel=Channel.INDEX
        )
    session = Player(cassette).session()
    for number, request in enumerate(reversed(requests)):
        found = served(send(session, request))
        assert found.body.read(0, 9) == b"%d" % (len(requests) - 1 - number)
    assert session.unplayed() == []
