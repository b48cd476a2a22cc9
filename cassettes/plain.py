"""Reading plain values (what JSON and msgpack give) into values of our own: each member of the type that is asked for, or its name.

What is read may come from a stranger: texts and lists are bounded, numbers are finite, and nothing is converted silently.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import StrEnum

from secondtake.cassettes.errors import Corrupt

TEXT_CHARACTERS = 2000
"""One text; a longer one is damage."""

ITEMS = 10_000
"""One list; a longer one is damage."""

_NUMBER = 1 << 63
"""msgpack and JavaScript's readers of JSON go no further."""


class Table:
    """One table of plain values. `where` names it in errors. Every reading method raises Corrupt for a member that is not as asked."""

    def __init__(self, table: Mapping[object, object], where: str) -> None:
        self._table = table
        self.where = where

    @classmethod
    def of(cls, value: object, where: str) -> Table:
        """`value` as a table.

        Raises:
            Corrupt: it is none.
        """
        if not isinstance(value, Mapping):
            raise Corrupt(f"{where} is no table")
        return cls(value, where)

    def value(self, name: str) -> object:
        """The member as it stands; None where there is none."""
        return self._table.get(name)

    def text(self, name: str, default: str | None = None) -> str:
        """A text that can be written as UTF-8."""
        return self._text(name, self._table.get(name, default))

    def text_or_none(self, name: str) -> str | None:
        """A text, or None for null and for no member."""
        return None if self._table.get(name) is None else self.text(name)

    def number(self, name: str, default: int | None = None) -> int:
        """A whole number below 2^63."""
        value = self._table.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= _NUMBER:
            raise self._wrong(name, "whole number")
        return value

    def number_or_none(self, name: str) -> int | None:
        """A whole number, or None for null and for no member."""
        return None if self._table.get(name) is None else self.number(name)

    def real(self, name: str) -> float:
        """A finite number."""
        value = self._table.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) >= _NUMBER or not math.isfinite(value):
            raise self._wrong(name, "finite number")
        return float(value)

    def real_or_none(self, name: str) -> float | None:
        """A finite number, or None for null and for no member."""
        return None if self._table.get(name) is None else self.real(name)

    def truth(self, name: str) -> bool:
        """True or false; false for no member."""
        value = self._table.get(name, False)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false")
        return value

    def truth_or_none(self, name: str) -> bool | None:
        """True, false, or None for null and for no member."""
        return None if self._table.get(name) is None else self.truth(name)

    def one_of[T: StrEnum](self, name: str, kind: type[T]) -> T:
        """One of the words of `kind`."""
        try:
            return kind(self.text(name))
        except ValueError:
            raise self._wrong(name, f"known {kind.__name__.lower()}") from None

    def texts(self, name: str, *, most: int = ITEMS) -> tuple[str, ...]:
        """A list of texts, of which there are at most `most`."""
        return tuple(self._text(f"{name}[{index}]", value) for index, value in enumerate(self._list(name, most)))

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        """A list of pairs of texts."""
        found = []
        for index, value in enumerate(self._list(name)):
            if not isinstance(value, (list, tuple)) or len(value) != 2:
                raise self._wrong(f"{name}[{index}]", "pair")
            found.append((self._text(f"{name}[{index}][0]", value[0]), self._text(f"{name}[{index}][1]", value[1])))
        return tuple(found)

    def table(self, name: str) -> Table:
        """A table within this one."""
        return Table.of(self._table.get(name), f"{self.where}.{name}")

    def tables(self, name: str) -> tuple[Table, ...]:
        """A list of tables."""
        return tuple(Table.of(value, f"{self.where}.{name}[{index}]") for index, value in enumerate(self._list(name)))

    def names(self) -> tuple[str, ...]:
        """The names of all members."""
        return tuple(self._text("(name)", name) for name in self._table)

    def _list(self, name: str, most: int = ITEMS) -> Sequence[object]:
        value = self._table.get(name)
        if not isinstance(value, (list, tuple)) or len(value) > most:
            raise self._wrong(name, f"list of at most {most}")
        return value

    def _text(self, name: str, value: object) -> str:
        if not isinstance(value, str) or len(value) > TEXT_CHARACTERS:
            raise self._wrong(name, f"text of at most {TEXT_CHARACTERS} characters")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise self._wrong(name, "text that can be written as UTF-8") from None
        return value

    def _wrong(self, name: str, wanted: str) -> Corrupt:
        return Corrupt(f"{self.where}.{name} is no {wanted}")
