"""Recorded sockets of one address: what a message means there, whose turn it is, and how they come out of a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from secondtake.cassettes import limits
from secondtake.cassettes.catalogue import Catalogue
from secondtake.cassettes.dialogues import Say
from secondtake.cassettes.exchange import Answer, Channel, Ending, Side
from secondtake.cassettes.frames import DETAIL, Kept, Log, Over
from secondtake.cassettes.match import request_keys
from secondtake.cassettes.memory import MemoryCassette
from secondtake.cassettes.misses import MissKind
from secondtake.cassettes.normalise import Aliases
from secondtake.cassettes.player import Player
from secondtake.cassettes.recorder import Recording
from secondtake.cassettes.records import End
from secondtake.cassettes.redact import Redactor
from secondtake.cassettes.sockets import Reading
from secondtake.cassettes.store import Store
from secondtake.cassettes.volatile import RULES
from secondtake.cassettes.websocket import Message, Opcode
from tests.cassettes.test_dialogues import CHAT, MODEL, create, event, message

KEY = b"k" * 32


def reading(aliases: Aliases | None = None) -> Reading:
    catalogue = Catalogue(MemoryCassette(), rules=RULES, aliases=aliases or Aliases(), allow_push=False)
    return Reading(MODEL, catalogue, Redactor(key=KEY))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ('{"type":"response.create","input":[],"prompt_cache_key":"a"}', '{"input":[], "type":"response.create"}', True),
        ('{"type":"response.create","input":"x","stream_id":"a"}', '{"type":"response.create","input":"x","stream_id":"b"}', True),
        ('{"type":"response.create","input":"x"}', '{"type":"response.create","input":"y"}', False),
        ('{"type":"response.create","input":[],"generate":false}', '{"type":"response.create","input":[]}', False),
        ("plain", "plain", True),
        ("plain", "plain ", False),
    ],
)
def test_messages_mean_the_same_by_the_rules_of_requests(one: str, other: str, equal: bool) -> None:
    """A-10: the normalisers that a POST is compared by; the name of a lane is the client's own choice."""
    meant = reading()
    assert (meant.form(Opcode.TEXT, one.encode()) == meant.form(Opcode.TEXT, other.encode())) is equal


def test_our_own_values_do_not_count_in_either_form() -> None:
    """DESIGN 3: the port we chose."""
    then, now = reading(Aliases({b"127.0.0.1:4001": b"ADDRESS"})), reading(Aliases({b"127.0.0.1:4002": b"ADDRESS"}))
    for opcode in (Opcode.TEXT, Opcode.BINARY):
        assert then.form(opcode, b"at 127.0.0.1:4001") == now.form(opcode, b"at 127.0.0.1:4002")


def test_a_miss_on_a_socket_says_where_without_showing_a_secret() -> None:
    """C-01."""
    secret = "sk-proj-" + "A1b2C3d4E5f6G7h8" * 3
    meant = reading()
    recorded = Kept(Side.REQUEST, Opcode.TEXT, b'{"a":"b"}', 0)
    live = meant.shown(message(f'{{"a":"KEY={secret}"}}'))
    miss = meant.miss(MissKind.WS_DIVERGED, live, Opcode.TEXT, recorded, 3, Channel.MODEL)
    assert miss.nearest is not None
    assert [one.path for one in miss.nearest.differences] == ["a"]
    assert secret not in repr(miss)


@pytest.mark.parametrize("padding", [0, limits.BODY_IN_MEMORY_BYTES])
def test_a_socket_comes_out_of_a_store_as_it_went_in(tmp_path: Path, padding: int) -> None:
    """The list stands in the journal's own bytes, also where a side is so large that it streamed out."""
    store, redactor = Store(tmp_path), Redactor(key=KEY)
    writer = store.create("one", meta={})
    recording = Recording(1, 0, redactor, keys=request_keys)
    log = Log(redactor)
    writer.write(recording.request_head(MODEL, Channel.MODEL))
    recording.detail(DETAIL, log.table)
    recording.response_head(Answer(101))
    said = [
        (Side.REQUEST, create("a" + "." * padding)),
        (Side.RESPONSE, event("response.created", "r1" + "." * padding)),
        (Side.RESPONSE, event("response.completed", "r1")),
    ]
    for offset_us, (side, text) in enumerate(said):
        kept = log.add(side, Opcode.TEXT, text.encode(), offset_us)
        assert kept is not None
        recording.redacted(kept[1])
        piece = recording.request_piece if side is Side.REQUEST else recording.response_piece
        writer.write(piece(kept[0], offset_us))
    log.over(Over.CLIENT)
    *before, end = recording.end(Ending.CLIENT_LEFT, 9)
    assert isinstance(end, End)
    writer.write(before)
    writer.commit(end, lambda _: None)
    writer.close(meta={})
    assert store.verify("one").faults == ()
    with store.open("one") as cassette:
        dialogue = Player(cassette, redactor).session().dialogues.open(MODEL)
        assert dialogue is not None
        out = dialogue.heard(Message(Opcode.TEXT, said[0][1].encode()))
        assert isinstance(out, list)
        assert [one.message.data.decode() for one in out if isinstance(one, Say)] == [said[1][1], said[2][1]]
        assert not Player(cassette, redactor).session().dialogues.known(CHAT)
