"""The one escaper for recorded text (SECURITY C-14)."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cli.render.escape import visible, visible_bytes, visible_line

HOSTILE = [
    # Terminal control: CSI, OSC, DCS, APC, PM, SOS, single shifts, resets, in 7-bit and 8-bit form.
    "\x1b[2J",
    "\x1b[H",
    "\x1b[31mred",
    "\x1b[?1049h",
    "\x1b[?25l",
    "\x1b[6n",
    "\x1b[c",
    "\x1b[>c",
    "\x1b[21t",
    "\x1b[20l",
    "\x1b[1;999r",
    "\x1b]0;title\x07",
    "\x1b]2;title\x1b\\",
    "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "\x1b]52;c;cm0gLXJmIH4=\x07",
    "\x1b]4;1;rgb:00/00/00\x07",
    "\x1b]10;?\x07",
    "\x1b]50;?\x07",
    "\x1b]1337;File=:AAAA\x07",
    "\x1b]777;notify;a;b\x07",
    '\x1bP$q"p\x1b\\',
    "\x1bP+q544e\x1b\\",
    "\x1b_Gf=100;AAAA\x1b\\",
    "\x1b^private\x1b\\",
    "\x1bXstring\x1b\\",
    "\x1bc",
    "\x1b7\x1b8",
    "\x1b=\x1b>",
    "\x1b(0lqqk\x1b(B",
    "\x1bN\x1bO",
    "\x9b2J",
    "\x9d0;title\x9c",
    "\x90$q\x9c",
    "\x9fapc\x9c",
    "\x9epm\x9c",
    "\x98sos\x9c",
    "\x85next line",
    "\x84index",
    "\x8dreverse",
    # C0 that moves or rings.
    "\x00",
    "\x05answerback",
    "\x07bell",
    "safe\x08\x08\x08\x08evil",
    "harmless\revil",
    "\x0bvertical",
    "\x0cform feed",
    "\x0eshift out\x0f",
    "\x11\x13flow control",
    "\x18\x1acancel",
    "\x7fdelete",
    # Text that is not what it looks like.
    "access\u202etxt.exe",
    "\u202dleft\u202c",
    "\u2066isolate\u2069",
    "\u2067\u2068",
    "\u200emark\u200f",
    "\u061carabic mark",
    "zero\u200bwidth",
    "non\u200cjoiner",
    "joi\u200dner",
    "word\u2060joiner",
    "\ufeffbom",
    "soft\u00adhyphen",
    "line\u2028separator",
    "paragraph\u2029separator",
    "\u034fgrapheme",
    "\u115f\u1160\u3164\uffa0fillers",
    "tags\U000e0041\U000e0042\U000e007f",
    "vs\ufe0f\U000e0100",
    "\ud800lone",
    "\ue000private",
    "\U0001d173musical",
    "\ufff9anchor\ufffb",
]


def test_the_corpus_is_large_enough() -> None:
    """C-14 asks for at least fifty sequences."""
    assert len(set(HOSTILE)) >= 50


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_nothing_that_moves_or_hides_survives(text: str) -> None:
    """C-14: what is printed holds no control, format, separator, surrogate or private character."""
    for character in visible(text):
        assert character in "\n\t" or unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert "\\x" in visible(text) or "\\u" in visible(text) or "\\U" in visible(text)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_terminal_emulator_stays_as_it_was(text: str) -> None:
    """C-14: a reader of the printed bytes meets no byte that a terminal acts on but newline and tab."""
    printed = visible(text).encode("utf-8")
    assert all((byte >= 0x20 and byte != 0x7F) or byte in b"\n\t" for byte in printed)
    # 8-bit C1 would be acted on by a terminal that is not in UTF-8 mode only as itself; as UTF-8 it is C2 80 .. C2 9F.
    assert not any(printed[i] == 0xC2 and 0x80 <= printed[i + 1] <= 0x9F for i in range(len(printed) - 1))


@given(st.text())
def test_escaping_is_idempotent_and_encodable(text: str) -> None:
    """C-14, as a property: any text can be printed on any UTF-8 stream, and escaping what is escaped changes nothing."""
    once = visible(text)
    assert visible(once) == once
    io.TextIOWrapper(io.BytesIO(), encoding="utf-8").write(once)


@given(st.binary())
def test_any_bytes_can_be_shown(data: bytes) -> None:
    """C-14: bytes that are not UTF-8 are shown by number."""
    assert "\x1b" not in visible_bytes(data)


def test_plain_text_of_any_language_stays() -> None:
    """Escaping is for what hides, not for what is foreign."""
    text = "Grüße, 日本語, Ελληνικά, עברית, naïve café, ✓ → 🎬\n\tindented"
    assert visible(text) == text


def test_a_line_stays_a_line() -> None:
    """C5, log forging: a name or a message never becomes two lines."""
    assert visible_line("a\nerror: forged\r\n\tb") == "a\\nerror: forged\\x0d\\n\\tb"
