"""The one way recorded text reaches a terminal: what could change its state or deceive the reader is shown as `\\x1b` (SECURITY C-14).

Escaped are C0 but newline and tab, DEL, C1, everything Unicode calls a format character (bidirectional controls, zero-width characters,
tags), line and paragraph separators, lone surrogates, unassigned and private code points, variation selectors, and the letters that show as
nothing. Backslashes stay as they are: the result is for reading, `show --body` gives the bytes.
"""

from __future__ import annotations

import unicodedata

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_SHOWN_AS_NOTHING = frozenset(
    {
        "\u034f",  # combining grapheme joiner
        "\u115f",  # Hangul fillers
        "\u1160",
        "\u3164",
        "\uffa0",
        "\u17b4",  # Khmer inherent vowels
        "\u17b5",
        "\u180b",  # Mongolian variation selectors
        "\u180c",
        "\u180d",
        "\u180f",
        "\u2800",  # Braille blank
        *map(chr, range(0xFE00, 0xFE10)),
        *map(chr, range(0xE0100, 0xE01F0)),
    }
)


def visible(text: str) -> str:
    """Return `text` with every character that is not plainly visible shown by its number; newline and tab stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if _plain(character) else _shown(character) for character in text)


def visible_line(text: str) -> str:
    """Return `text` as one line: newline, tab and carriage return are shown too."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def visible_bytes(data: bytes) -> str:
    """Return `data` as UTF-8 text for reading; bytes that are not UTF-8 are shown as `\\xff`."""
    return visible(data.decode("utf-8", "backslashreplace"))


def visible_bytes_line(data: bytes) -> str:
    """Return `data` as one line of text for reading."""
    return visible_line(data.decode("utf-8", "backslashreplace"))


def _plain(character: str) -> bool:
    if character in {"\n", "\t"}:
        return True
    return unicodedata.category(character) not in _HIDDEN_CATEGORIES and character not in _SHOWN_AS_NOTHING


def _shown(character: str) -> str:
    number = ord(character)
    if number <= 0xFF:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"
