"""Sequences, sessions, misses: what a player gives for a request."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from secondtake.cassettes.exchange import Answer, Answered, Channel, Ending, Fields, Request, Side
from secondtake.cassettes.match import request_keys
from secondtake.cassettes.memory import MemoryCassette, digest_of, fields
from secondtake.cassettes.misses import Miss, MissKind
from secondtake.cassettes.normalise import Aliases, ignore
from secondtake.cassettes.player import Live, Options, Player, Reuse, Route, Serve, Session
from secondtake.cassettes.redact import RedactedBody, Redactor
from secondtake.cassettes.volatile import RULES


def ask(path: str, *head: str, method: str = "GET", host: str = "web.example", port: int = 443, scheme: str = "https") -> Request:
    return Request(method, scheme, host, port, path.encode("latin-1"), fields=fields(*head))


def post(path: str, *head: str, host: str = "web.example") -> Request:
    return ask(path, "Content-Type: application/json", *head, method="POST", host=host)


def live(content: bytes = b"") -> Live:
    return Live(len(content), digest_of(content), content)


def ok(*head: str, status: int = 200) -> Answer:
    return Answer(status, b"", fields=fields(*head))


def bytes_of(served: Serve | Miss) -> bytes:
    assert isinstance(served, Serve), served
    return served.body.read(0, served.body.size_bytes)


def missed(served: Serve | Miss) -> Miss:
    assert isinstance(served, Miss), served
    return served


def served(found: Serve | Miss) -> Serve:
    assert isinstance(found, Serve), found
    return found


def start(cassette: MemoryCassette, **options: object) -> Session:
    return Player(cassette, options=Options(**options)).session()  # type: ignore[arg-type]  # forwarded as they are


STRICT = {"reuse": Reuse.STRICT}


def test_a_second_request_is_exhausted_and_a_third_is_new() -> None:
    """T-A1."""
    cassette = MemoryCassette()
    cassette.record(ask("/one"), ok(), received=b"1")
    session = start(cassette, **STRICT)
    assert bytes_of(session.answer(ask("/one"), live())) == b"1"
    assert missed(session.answer(ask("/one"), live())).kind is MissKind.EXHAUSTED
    assert missed(session.answer(ask("/three"), live())).kind is MissKind.NEW_RESOURCE
    assert missed(session.answer(ask("/one"), live())).kind is MissKind.EXHAUSTED


def test_a_post_gets_each_answer_once_in_order_and_never_again() -> None:
    """T-A2."""
    cassette = MemoryCassette()
    for status in (201, 409):
        cassette.record(post("/login"), ok(status=status), sent=b'{"user":"a"}')
    session = start(cassette)
    found = [session.answer(post("/login"), live(b'{"user":"a"}')) for _ in range(4)]
    assert [served(one).answer.status for one in found[:2]] == [201, 409]
    assert [missed(one).kind for one in found[2:]] == [MissKind.EXHAUSTED] * 2


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (STRICT, [202, 202, 200, None, None]),
        ({}, [202, 202, 200, 200, 200]),
        ({"routes": ((Route(path=b"/poll"), Reuse.STRICT),)}, [202, 202, 200, None, None]),
        ({"reuse": Reuse.STRICT, "routes": ((Route(host="web.example", method="GET"), Reuse.REPEAT_LAST),)}, [202, 202, 200, 200, 200]),
    ],
)
def test_polling_ends_or_repeats_its_last_answer_as_the_route_says(options: dict[str, object], expected: list[int | None]) -> None:
    """T-A3: a repeated answer is marked."""
    cassette = MemoryCassette()
    for status in (202, 202, 200):
        cassette.record(ask("/poll"), ok(status=status))
    session = start(cassette, **options)
    found = [session.answer(ask("/poll"), live()) for _ in range(5)]
    assert [one.answer.status if isinstance(one, Serve) else None for one in found] == expected
    assert [one.reused for one in found if isinstance(one, Serve)] == [False] * 3 + [True] * expected[3:].count(200)


def upload(boundary: str, second: bytes) -> tuple[Request, bytes]:
    mark = boundary.encode()
    content = b'--%s\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n' % mark
    content += b'--%s\r\nContent-Disposition: form-data; name="file"\r\n\r\n%s\r\n--%s--\r\n' % (mark, second, mark)
    return ask("/up", f"Content-Type: multipart/form-data; boundary={boundary}", method="POST"), content


def test_a_changed_boundary_matches_and_a_changed_part_is_named() -> None:
    """T-A5."""
    cassette = MemoryCassette()
    request, content = upload("AAA", b"\x00\x01")
    cassette.record(request, ok(), sent=content, received=b"kept")
    session = start(cassette)
    other, changed = upload("BBB", b"\x00\x02")
    miss = missed(session.answer(other, live(changed)))
    assert miss.nearest is not None
    assert [(item.where, item.path) for item in miss.nearest.differences] == [("part", "file")]
    again, same = upload("BBB", b"\x00\x01")
    found = served(session.answer(again, live(same)))
    assert found.answered is Answered.NORMALISED
    assert bytes_of(found) == b"kept"


def call(session_id: str, tool_id: str) -> bytes:
    tools = [{"name": f"t{i}", "description": f"tool {tool_id if i == 9 else i} " + "x" * 20_000} for i in range(10)]
    return json.dumps(
        {
            "model": "m-1",
            "max_tokens": 9,
            "system": [{"type": "text", "text": f"You are in session {session_id}."}],
            "tools": tools,
            "messages": [{"role": "user", "content": "go"}],
        }
    ).encode()


MODEL = "/v1/messages?beta=true"


def test_two_volatile_places_are_two_differences_in_the_middle_of_200_kilobytes() -> None:
    """T-A7."""
    cassette = MemoryCassette()
    cassette.record(post(MODEL), ok(), sent=call("aaaa-1111", "bbbb-2222"), channel=Channel.MODEL, adapter="anthropic")
    miss = missed(start(cassette).answer(post(MODEL), live(call("cccc-3333", "dddd-4444"))))
    assert miss.kind is MissKind.MODEL_DIVERGED
    assert miss.nearest is not None
    assert [item.path for item in miss.nearest.differences] == ["system[0].text", "tools[9].description"]
    assert all(len(item.live or "") < 130 for item in miss.nearest.differences)
    assert "system[0].text" in miss.message
    assert "\n" not in miss.message


def test_declared_places_are_forgiven() -> None:
    """T-A7."""
    cassette = MemoryCassette()
    cassette.record(post(MODEL), ok(), sent=call("aaaa-1111", "bbbb-2222"), received=b"yes", channel=Channel.MODEL)
    rules = (*RULES, ignore("system[0].text"), ignore("tools[*].description"))
    found = served(start(cassette, rules=rules).answer(post(MODEL), live(call("cccc-3333", "dddd-4444"))))
    assert found.answered is Answered.NORMALISED
    assert bytes_of(found) == b"yes"


def test_every_document_of_a_shuffled_batch_gets_its_own_answer() -> None:
    """T-A8: a swapped pair is impossible."""
    cassette = MemoryCassette()

    def body(number: int) -> bytes:
        return json.dumps(
            {"model": "m", "max_tokens": 1, "system": f"doc {number}", "messages": [{"role": "user", "content": "sum"}]}
        ).encode()

    for number in range(20):
        cassette.record(post(MODEL), ok(), sent=body(number), received=b"%d" % number, channel=Channel.MODEL)
    order = list(range(20))
    random.Random(7).shuffle(order)
    session = start(cassette)
    assert [bytes_of(session.answer(post(MODEL), live(body(number)))) for number in order] == [b"%d" % number for number in order]


def test_two_equal_requests_in_flight_together_are_served_in_order_and_said_to_be_ambiguous() -> None:
    """T-A9."""
    cassette = MemoryCassette()
    cassette.record(post("/ask"), ok(), sent=b"{}", received=b"X", started_us=10, ended_us=500)
    cassette.record(post("/ask"), ok(), sent=b"{}", received=b"Y", started_us=20, ended_us=400)
    for _ in range(2):
        session = start(cassette)
        first, second = (served(session.answer(post("/ask"), live(b"{}"))) for _ in range(2))
        assert [bytes_of(first), bytes_of(second)] == [b"X", b"Y"]
        assert any("ambiguous pair" in note for note in first.notes)
        assert any("ambiguous pair" in note for note in second.notes)


def test_equal_requests_one_after_another_are_not_ambiguous() -> None:
    """T-A9."""
    cassette = MemoryCassette()
    for received in (b"X", b"Y"):
        cassette.record(post("/ask"), ok(), sent=b"{}", received=received)
    assert served(start(cassette).answer(post("/ask"), live(b"{}"))).notes == ()


def test_rows_in_order_of_end_are_played_in_order_of_start() -> None:
    """T-A9: the journal is in order of end, `seq` is request start."""
    cassette = MemoryCassette()
    for received in (b"X", b"Y"):
        cassette.record(post("/ask"), ok(), sent=b"{}", received=received)
    turned = MemoryCassette((cassette.exchanges[2], cassette.exchanges[1]), cassette.bodies)
    session = start(turned)
    assert [bytes_of(session.answer(post("/ask"), live(b"{}"))) for _ in range(2)] == [b"X", b"Y"]


def test_a_header_that_is_gone_is_forgiven_and_said() -> None:
    """T-A11, T-M4: values of headers never count, whatever they are."""
    cassette = MemoryCassette()
    cassette.record(ask("/a", "X-Trace: 1", "Authorization: one", "X-Amz-Date: 1"), ok())
    found = served(start(cassette).answer(ask("/a", "Authorization: two", "X-Amz-Date: 2"), live()))
    assert found.answered is Answered.EXACT
    assert found.notes == ("field absent: x-trace",)


def test_another_accept_is_another_answer_where_the_recording_varies_by_it() -> None:
    """T-A12."""
    cassette = MemoryCassette()
    as_json, as_html = "Accept: application/json", "Accept: text/html"
    cassette.record(ask("/v", as_json), ok("Vary: Accept", "Content-Type: application/json"), received=b"{}")
    assert missed(start(cassette).answer(ask("/v", as_html), live())).kind is MissKind.VARIANT
    cassette.record(ask("/v", as_html), ok("Vary: Accept-Encoding, accept", "Content-Type: text/html"), received=b"<p>")
    session = start(cassette)
    assert bytes_of(session.answer(ask("/v", as_html), live())) == b"<p>"
    assert bytes_of(session.answer(ask("/v", as_json), live())) == b"{}"
    assert bytes_of(session.answer(ask("/v", as_html), live())) == b"<p>"


def test_accept_does_not_count_where_the_recording_does_not_vary() -> None:
    """T-A12: headers are not in the key."""
    cassette = MemoryCassette()
    cassette.record(ask("/v", "Accept: application/json"), ok("Content-Type: application/json"), received=b"{}")
    assert bytes_of(start(cassette).answer(ask("/v", "Accept: text/html"), live())) == b"{}"


def test_what_was_not_played_is_listed_with_its_position() -> None:
    """T-A13: and a failed replay changes nothing that is kept (T-L5)."""
    cassette = MemoryCassette()
    for path in ("/a", "/b", "/c"):
        cassette.record(ask(path), ok())
    before = list(cassette.rows)
    session = start(cassette)
    session.answer(ask("/b"), live())
    session.answer(ask("/nowhere"), live())
    assert [row.seq for row in session.unplayed()] == [1, 3]
    assert list(cassette.rows) == before


def test_a_socket_that_was_refused_is_not_missing() -> None:
    """AGENTS 5.12: it is refused in a replay as it was in the recording, without the cassette."""
    cassette = MemoryCassette()
    cassette.record(ask("/v1/responses"), replace(ok(status=426), synthetic=True))
    cassette.record(ask("/v1/responses"), ok(status=426))
    assert [row.seq for row in start(cassette).unplayed()] == [2]


@pytest.mark.parametrize("other", [{"host": "127.0.0.1"}, {"port": 8443}, {"scheme": "http"}])
def test_scheme_host_and_port_are_those_the_client_asked_for(other: dict[str, object]) -> None:
    """T-A15."""
    cassette = MemoryCassette()
    cassette.record(ask("/a"), ok())
    assert isinstance(start(cassette).answer(ask("/a", **other), live()), Miss)  # type: ignore[arg-type]  # names of `ask`
    assert isinstance(start(cassette).answer(ask("/a"), live()), Serve)


def test_a_redirect_that_sets_a_cookie_is_followed_by_the_page_and_never_loops() -> None:
    """T-G3."""
    cassette = MemoryCassette()
    cassette.record(ask("/"), ok("Location: /", "Set-Cookie: seen=1", status=302))
    cassette.record(ask("/", "Cookie: seen=1"), ok(), received=b"page")
    session = start(cassette)
    found = [served(session.answer(ask("/", "Cookie: seen=1"), live())).answer.status for _ in range(4)]
    assert found == [302, 200, 200, 200]


def test_a_redirect_is_served_and_an_unknown_target_is_a_miss() -> None:
    """T-G1, T-G2."""
    cassette = MemoryCassette()
    cassette.record(ask("/go"), ok("Location: https://other.example/x", status=302))
    session = start(cassette)
    assert served(session.answer(ask("/go"), live())).answer.status == 302
    miss = missed(session.answer(ask("/x", host="other.example"), live()))
    assert "other.example/x" in miss.message


def test_a_download_that_was_cut_is_not_played_when_a_whole_one_is_there() -> None:
    """T-I4."""
    cassette = MemoryCassette()
    cassette.record(ask("/f.bin"), ok("Content-Length: 10"), received=b"0123", ended=Ending.RESET)
    cassette.record(ask("/f.bin"), ok("Content-Length: 10"), received=b"0123456789")
    session = start(cassette)
    found = [served(session.answer(ask("/f.bin"), live())) for _ in range(2)]
    assert [bytes_of(one) for one in found] == [b"0123456789"] * 2
    assert found[0].ended is Ending.COMPLETE
    assert session.unplayed() == []


def test_a_download_that_was_only_ever_cut_is_played_cut() -> None:
    """T-I4, T-B4."""
    cassette = MemoryCassette()
    cassette.record(ask("/f.bin"), ok("Content-Length: 10"), received=b"0123", ended=Ending.RESET)
    found = served(start(cassette).answer(ask("/f.bin"), live()))
    assert (bytes_of(found), found.ended) == (b"0123", Ending.RESET)


def test_a_model_call_that_was_reset_and_tried_again_replays_in_that_order() -> None:
    """T-I4, T-B4: only idempotent resources skip the accident."""
    cassette = MemoryCassette()
    cassette.record(post(MODEL), ok(), sent=b'{"a":1}', received=b"par", ended=Ending.RESET, channel=Channel.MODEL)
    cassette.record(post(MODEL), ok(), sent=b'{"a":1}', received=b"whole", channel=Channel.MODEL)
    session = start(cassette)
    found = [served(session.answer(post(MODEL), live(b'{"a":1}'))) for _ in range(2)]
    assert [(bytes_of(one), one.ended) for one in found] == [(b"par", Ending.RESET), (b"whole", Ending.COMPLETE)]


def test_an_answer_of_the_proxy_itself_is_replayed_as_it_was() -> None:
    """T-C4: an upstream that could not be understood fails the same way again."""
    cassette = MemoryCassette()
    cassette.record(ask("/bad"), replace(ok(status=502), synthetic=True), received=b"upstream sent two lengths")
    found = served(start(cassette).answer(ask("/bad"), live()))
    assert (found.answer.status, found.answer.synthetic, bytes_of(found)) == (502, True, b"upstream sent two lengths")


def test_an_exchange_to_which_nothing_came_back_is_never_served() -> None:
    """T-L1: what a died recorder left in flight has no answer."""
    cassette = MemoryCassette()
    cassette.record(ask("/hung"), None, ended=Ending.RECORDER_DIED)
    cassette.record(post("/hung"), None, sent=b"{}", ended=Ending.CLIENT_LEFT)
    session = start(cassette)
    assert isinstance(session.answer(ask("/hung"), live()), Miss)
    assert isinstance(session.answer(post("/hung"), live(b"{}")), Miss)
    assert session.unplayed() == []


def test_a_recorded_304_is_only_for_a_client_that_holds_a_copy() -> None:
    """D: mitmproxy serves it to anybody."""
    cassette = MemoryCassette()
    cassette.record(ask("/c", 'If-None-Match: "x"'), ok('ETag: "x"', status=304))
    session = start(cassette)
    miss = missed(session.answer(ask("/c"), live()))
    assert miss.kind is MissKind.VARIANT
    assert served(session.answer(ask("/c", 'If-None-Match: "x"'), live())).answer.status == 304


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ('If-None-Match: "x"', 304),
        ('If-None-Match: "w", W/"x"', 304),
        ('If-None-Match: "y"', None),
        ("If-Modified-Since: Wed, 21 Oct 2015 07:28:00 GMT", None),
    ],
)
def test_a_recorded_304_is_only_for_the_copy_it_confirmed(head: str, status: int | None) -> None:
    """D, T-D4: another validator may hold another file."""
    cassette = MemoryCassette()
    cassette.record(ask("/c", 'If-None-Match: "x"'), ok('ETag: "x"', status=304))
    found = start(cassette).answer(ask("/c", head), live())
    assert (found.answer.status if isinstance(found, Serve) else None) == status


def test_a_recorded_range_is_not_for_a_client_that_holds_another_file() -> None:
    """T-I1: If-Range wrong, and the whole was not recorded."""
    cassette = MemoryCassette()
    cassette.record(ask("/f", "Range: bytes=0-9"), ok("Content-Range: bytes 0-9/500", 'ETag: "x"', status=206), received=b"0123456789")
    session = start(cassette)
    assert isinstance(session.answer(ask("/f", "Range: bytes=0-9", 'If-Range: "y"'), live()), Miss)
    assert served(session.answer(ask("/f", "Range: bytes=0-9", 'If-Range: "x"'), live())).answer.status == 206


def test_ranges_are_told_apart() -> None:
    """I: mitmproxy answers bytes 100-109 with bytes 0-9."""
    cassette = MemoryCassette()
    cassette.record(ask("/f", "Range: bytes=0-9"), ok("Content-Range: bytes 0-9/500", status=206), received=b"0123456789")
    session = start(cassette)
    assert missed(session.answer(ask("/f", "Range: bytes=100-109"), live())).kind is MissKind.RANGE_NOT_RECORDED
    assert missed(session.answer(ask("/f"), live())).kind is MissKind.RANGE_NOT_RECORDED
    assert bytes_of(session.answer(ask("/f", "range: Bytes=0-9"), live())) == b"0123456789"


def test_a_body_is_matched_by_what_it_says_however_it_is_compressed() -> None:
    """T-E4."""
    import gzip

    import zstandard

    document = json.dumps({"model": "m", "input": "x" * 500}).encode()
    cassette = MemoryCassette()
    packed = zstandard.ZstdCompressor(level=1).compress(document)
    cassette.record(post("/r", "Content-Encoding: zstd"), ok(), sent=packed, received=b"yes")
    for body, head in (
        (document, ()),
        (zstandard.ZstdCompressor(level=19).compress(document), ("Content-Encoding: zstd",)),
        (gzip.compress(document), ("content-encoding: GZIP",)),
        (document.replace(b": ", b":"), ()),
    ):
        assert bytes_of(start(cassette).answer(post("/r", *head), live(body))) == b"yes"
    assert served(start(cassette).answer(post("/r", "Content-Encoding: zstd"), live(packed))).answered is Answered.EXACT
    assert isinstance(start(cassette).answer(post("/r", "Content-Encoding: zstd"), live(packed[:-3])), Miss)


@pytest.mark.parametrize("content", [b"", bytes(range(256)) * 3, b"\r\n\x00\xed\xa0\x80", b"\x80"])
def test_any_bytes_of_a_body_match_themselves_and_nothing_else(content: bytes) -> None:
    """T-E1."""
    cassette = MemoryCassette()
    cassette.record(post("/b"), ok(), sent=content, received=content)
    session = start(cassette)
    assert isinstance(session.answer(post("/b"), live(content + b"x")), Miss)
    assert bytes_of(session.answer(post("/b"), live(content))) == content


def test_a_body_too_large_to_hold_is_matched_by_its_digest_after_redaction() -> None:
    """T-R10."""
    cassette = MemoryCassette()
    kept = b"k" * 1000
    cassette.record(ask("/big", method="PUT"), ok(), sent=kept, received=b"stored", keys=lambda request, _: request_keys(request, None))
    session = start(cassette)
    assert isinstance(session.answer(ask("/big", method="PUT"), Live(1000, digest_of(b"other"), None, digest_of(b"other"))), Miss)
    assert bytes_of(session.answer(ask("/big", method="PUT"), Live(1000, digest_of(b"raw"), None, digest_of(kept)))) == b"stored"


KEY = b"sk-ant-api03-" + b"Abc1_dEf2" * 10


def redacting() -> Redactor:
    return Redactor(key=b"k" * 32)


def test_another_key_in_header_query_and_body_still_matches() -> None:
    """T-K3, T-A11."""
    cassette = MemoryCassette()
    recorder = redacting()
    request = ask(f"/v1/x?key={KEY.decode()}&b=1", f"x-api-key: {KEY.decode()}", "Content-Type: application/json", method="POST")
    content = json.dumps({"api_key": KEY.decode(), "env": f"TOKEN={KEY.decode()}"}).encode()
    kept = recorder.body(content, request.fields, Side.REQUEST).content
    assert KEY not in kept
    cassette.record(recorder.request(request)[0], ok(), sent=kept, received=b"yes")
    player = Player(cassette, redacting())
    assert bytes_of(player.session().answer(request, live(content))) == b"yes"
    other = b"sk-ant-api03-" + b"Zyx9-wVu8" * 12
    rotated = ask(f"/v1/x?b=1&key={other.decode()}", f"x-api-key: {other.decode()}", "Content-Type: application/json", method="POST")
    found = served(player.session().answer(rotated, live(content.replace(KEY, other))))
    assert found.answered is Answered.NORMALISED
    miss = missed(player.session().answer(rotated, live(content.replace(KEY, other).replace(b"env", b"envy"))))
    assert other.decode() not in miss.message
    assert other.decode() not in repr(miss)


def test_a_key_inside_a_compressed_body_does_not_count() -> None:
    """T-K6."""
    import gzip

    cassette = MemoryCassette()
    recorder = redacting()
    request = post("/v1/x", "Content-Encoding: gzip")
    document = json.dumps({"api_key": KEY.decode(), "n": 1}).encode()
    told = recorder.body(gzip.compress(document), request.fields, Side.REQUEST)
    assert told.decoded
    cassette.record(
        request,
        ok(),
        sent=told.content,
        received=b"yes",
        keys=lambda asked, content: request_keys(replace(asked, fields=told.described(asked.fields)), content),
    )
    other = b"sk-ant-api03-" + b"Qrs5-tUv6" * 11
    session = Player(cassette, redacting()).session()
    assert isinstance(session.answer(request, live(gzip.compress(document.replace(b"1}", b"2}")))), Miss)
    assert bytes_of(session.answer(request, live(gzip.compress(document.replace(KEY, other), 1)))) == b"yes"


class Withholding(Redactor):
    """Keeps nothing of any body."""

    def body(self, content: bytes, fields: Fields, side: Side) -> RedactedBody:
        return RedactedBody(b"", withheld="a test")


def test_a_body_of_which_nothing_is_kept_is_compared_by_its_address_and_that_is_said() -> None:
    """DESIGN 4: nothing is approximated silently."""
    cassette = MemoryCassette()
    cassette.record(post("/v1/x"), ok(), received=b"yes", details={"request_withheld": "a test"})
    found = served(Player(cassette, Withholding(key=b"k" * 32)).session().answer(post("/v1/x"), live(b"anything")))
    assert found.answered is Answered.NORMALISED
    assert any("withheld" in note for note in found.notes)


def test_a_body_kept_as_a_fingerprint_matches_itself_and_nothing_else() -> None:
    """DESIGN 4: what cannot be decoded is withheld, and still told apart."""
    cassette = MemoryCassette()
    request = post("/v1/x", "Content-Encoding: snappy")
    told = redacting().body(b"\xff\x06\x00\x00sNaPpY", request.fields, Side.REQUEST)
    assert told.withheld
    cassette.record(request, ok(), sent=told.content, received=b"yes")
    session = Player(cassette, redacting()).session()
    assert isinstance(session.answer(request, live(b"\xff\x06\x00\x00sNaPpZ")), Miss)
    assert bytes_of(session.answer(request, live(b"\xff\x06\x00\x00sNaPpY"))) == b"yes"


def test_our_own_port_and_ca_in_a_tool_result_do_not_count() -> None:
    """T-R13: a tool call that runs `env | sort`."""
    cassette = MemoryCassette()

    def turn(port: int, ca: str) -> bytes:
        result = f"CURL_CA_BUNDLE={ca}\nHTTPS_PROXY=http://127.0.0.1:{port}\nX={port}9\n"
        nested = json.dumps({"output": result})
        return json.dumps({"model": "m", "messages": [{"role": "tool", "content": result}, {"role": "tool", "content": nested}]}).encode()

    def names(port: int, ca: str) -> Aliases:
        return Aliases({b"%d" % port: b"port", ca.encode(): b"ca"})

    recorded = names(41001, "/run/a b/ca.pem")
    cassette.record(
        post("/chat/completions"),
        ok(),
        sent=turn(41001, "/run/a b/ca.pem"),
        received=b"yes",
        keys=lambda request, content: request_keys(request, content, aliases=recorded),
    )
    session = start(cassette, aliases=names(5555, "/elsewhere/ca-2.pem"))
    content = turn(5555, "/elsewhere/ca-2.pem").replace(b"55559", b"410019")
    assert bytes_of(session.answer(post("/chat/completions"), live(content))) == b"yes"


def test_sessions_have_queues_of_their_own() -> None:
    """T-R14."""
    cassette = MemoryCassette()
    for received in (b"1", b"2"):
        cassette.record(post("/q"), ok(), sent=b"{}", received=received)
    player = Player(cassette)
    one, two = player.session("a"), player.session("b")
    order = [bytes_of(session.answer(post("/q"), live(b"{}"))) for session in (one, two, two, one)]
    assert order == [b"1", b"1", b"2", b"2"]


def test_a_websocket_upgrade_is_refused_even_where_one_was_recorded() -> None:
    """T-H1: none is replayed."""
    cassette = MemoryCassette()
    upgrade = ask("/v1/responses", "Connection: Upgrade", "Upgrade: websocket")
    cassette.record(upgrade, ok(status=101))
    assert missed(start(cassette).answer(upgrade, live())).kind is MissKind.WS_REFUSED


PUSH = "0000000000000000000000000000000000000000 1111111111111111111111111111111111111111 refs/heads/main"


def push(agent: str, pack: bytes) -> bytes:
    line = PUSH.encode() + b"\x00 report-status side-band-64k agent=" + agent.encode()
    return b"%04x" % (len(line) + 4) + line + b"0000" + b"PACK" + pack


def test_a_push_is_refused_and_with_leave_matched_by_its_ref_lines() -> None:
    """T-R7."""
    cassette = MemoryCassette()
    request = ask("/r.git/git-receive-pack", "Content-Type: application/x-git-receive-pack-request", method="POST")
    discovery = ask("/r.git/info/refs?service=git-receive-pack")
    cassette.record(discovery, ok(), received=b"refs", channel=Channel.VCS)
    cassette.record(request, ok(), sent=push("git/2.39.5", b"aaa"), received=b"unpack ok", channel=Channel.VCS)
    refusing = start(cassette)
    assert missed(refusing.answer(discovery, live())).kind is MissKind.PUSH_REFUSED
    assert missed(refusing.answer(request, live(push("git/2.39.5", b"aaa")))).kind is MissKind.PUSH_REFUSED
    allowed = start(cassette, allow_push=True)
    assert bytes_of(allowed.answer(discovery, live())) == b"refs"
    assert isinstance(allowed.answer(request, live(push("git/2.47.1", b"bbb").replace(b"main", b"evil"))), Miss)
    assert bytes_of(allowed.answer(request, live(push("git/2.47.1", b"bbb")))) == b"unpack ok"


def fetch(agent: str, *lines: str) -> bytes:
    every = [b"command=fetch", b"agent=" + agent.encode(), b"object-format=sha1"]
    head = b"".join(b"%04x" % (len(line) + 4) + line for line in every)
    body = b"".join(b"%04x" % (len(line) + 5) + line.encode() + b"\n" for line in lines)
    return head + b"0001" + body + b"0000"


def test_a_fetch_matches_across_git_versions_but_not_with_other_have_lines() -> None:
    """T-N8, T-R7: gzip request, `Git-Protocol: version=2`."""
    import gzip

    cassette = MemoryCassette()
    head = ("Content-Type: application/x-git-upload-pack-request", "Git-Protocol: version=2")
    request = ask("/r.git/git-upload-pack", *head, method="POST")
    cassette.record(request, ok(), sent=fetch("git/2.39.5-Linux", "want " + "a" * 40, "have " + "b" * 40), received=b"pack")
    packed = gzip.compress(fetch("git/2.47.0", "want " + "a" * 40, "have " + "b" * 40))
    zipped = ask("/r.git/git-upload-pack", *head, "Content-Encoding: gzip", method="POST")
    other = ask("/r.git/git-upload-pack", head[0], "Content-Encoding: gzip", method="POST")
    changed = fetch("git/2.39.5-Linux", "want " + "a" * 40, "have " + "c" * 40)
    session = start(cassette)
    assert isinstance(session.answer(request, live(changed)), Miss)
    assert isinstance(session.answer(other, live(packed)), Miss)
    assert bytes_of(session.answer(zipped, live(packed))) == b"pack"


def test_replayed_twice_the_answers_are_equal() -> None:
    """T-M1, T-M2: recorded fields, Date and retry-after included, are served as they are."""
    cassette = MemoryCassette()
    cassette.record(post("/m"), ok("Date: Mon, 30 Nov 2026 00:00:00 GMT", "Retry-After: 30", status=429), sent=b"{}", received=b"slow")
    cassette.record(ask("/f"), ok('ETag: "e"', "Content-Length: 9"), received=b"123456789")

    def play() -> list[Serve | Miss]:
        session = start(cassette)
        return [
            session.answer(post("/m"), live(b"{}")),
            session.answer(ask("/f", "Range: bytes=1-2,4-5"), live()),
            session.answer(ask("/none"), live()),
        ]

    first, second = play(), play()
    assert [bytes_of(one) for one in first[:2]] == [bytes_of(one) for one in second[:2]]
    assert [one.answer for one in first[:2] if isinstance(one, Serve)] == [one.answer for one in second[:2] if isinstance(one, Serve)]
    assert first[2] == second[2]
    assert dict(served(first[0]).answer.fields)[b"Retry-After"] == b"30"


def test_a_cassette_recorded_with_other_rules_gets_its_keys_anew() -> None:
    """A: `Keys.rules` names the list."""
    cassette = MemoryCassette()
    body = b'{"model":"m","max_tokens":1,"metadata":{"user_id":"a"},"messages":[{"role":"user","content":"x"}]}'
    cassette.record(post(MODEL), ok(), sent=body, received=b"yes", keys=lambda request, content: request_keys(request, content, rules=()))
    assert bytes_of(start(cassette).answer(post(MODEL), live(body.replace(b'"a"', b'"b"')))) == b"yes"
    assert isinstance(start(cassette, rules=()).answer(post(MODEL), live(body.replace(b'"a"', b'"b"'))), Miss)


def test_the_first_of_a_queue_is_found_at_once_however_long_it_is() -> None:
    """J: polling ten thousand times costs the same each time."""
    cassette = MemoryCassette()
    for number in range(3000):
        cassette.record(ask("/poll"), ok(), received=b"%d" % number)
    session = start(cassette)
    assert [bytes_of(session.answer(ask("/poll"), live())) for _ in range(3001)][-2:] == [b"2999", b"2999"]


def test_a_miss_of_a_burst_is_said_to_be_one_only_where_some_of_it_was_recorded() -> None:
    """AGENTS 5.17: an agent's own installer is cut off at random; `npm install` in its shell is content."""
    embedded = ("User-Agent: npm/undefined node/v24.3.0 linux x64 workspaces/false", "pacote-req-type: packument")
    cassette = MemoryCassette()
    session = start(cassette)
    assert not missed(session.answer(ask("/zod", *embedded), live())).burst
    cassette.record(ask("/react", *embedded), ok("Content-Type: application/json"), received=b"{}", channel=Channel.INDEX)
    session = start(cassette)
    assert missed(session.answer(ask("/zod", *embedded), live())).burst
    assert not missed(session.answer(ask("/zod", *embedded, host="other.example"), live())).burst
    assert not missed(session.answer(ask("/zod", "User-Agent: npm/11.0.0 node/v20.0.0", embedded[1]), live())).burst
    assert bytes_of(session.answer(ask("/react", *embedded), live())) == b"{}"
