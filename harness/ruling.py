"""The rules a person declared, from their files; and what a recording says of the values that were its own."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from secondtake.cassettes.declared import Declared, parse
from secondtake.cassettes.errors import BadInput
from secondtake.cassettes.normalise import Aliases
from secondtake.harness.equipment import placed

if TYPE_CHECKING:
    from secondtake.cassettes.cassette import Cassette

STORE_RULES = "rules"
"""The file in a store whose rules hold for every replay from it."""

RULES_BYTES = 1024 * 1024


def declared_rules(store: Path, files: Sequence[Path]) -> tuple[Declared, ...]:
    """Return the rules of the store, where it has a file of them, and of `files`, each once.

    Raises:
        BadInput: a file cannot be read, or holds what is no rule, or forgives too much.
    """
    of_store = store / STORE_RULES
    found: list[Declared] = []
    for path in ([of_store] if of_store.is_file() else []) + list(files):
        try:
            with path.open("rb") as opened:
                content = opened.read(RULES_BYTES + 1)
            text = content.decode()
        except OSError as error:
            raise BadInput(f"the rules in {path} cannot be read: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise BadInput(f"the rules in {path} are not UTF-8") from error
        if len(content) > RULES_BYTES:
            raise BadInput(f"the rules in {path} are longer than {RULES_BYTES} bytes")
        found += parse(text, str(path))
    return tuple(dict.fromkeys(found))


def recorded_aliases(cassette: Cassette) -> Aliases:
    """Return the values that were a recording's own, as far as it says which they were. What it says is only looked for, never used."""
    return told_aliases(cassette.meta)


def told_aliases(meta: Mapping[str, object]) -> Aliases:
    """Return the values that were a run's own, as its recording's `meta` tells them."""
    values: dict[bytes, bytes] = {}
    proxy, bundle = meta.get("proxy"), meta.get("bundle")
    if isinstance(proxy, str) and proxy:
        values[f"http://{proxy}".encode("utf-8", "surrogateescape")] = b"SECONDTAKE_PROXY"
        values[proxy.encode("utf-8", "surrogateescape")] = b"SECONDTAKE_ADDRESS"
    if isinstance(bundle, str) and bundle:
        values[os.fsencode(bundle)] = b"SECONDTAKE_BUNDLE"
    for key, name in (("cwd", b"WORKSPACE"), ("home", b"HOME"), ("tmpdir", b"TMPDIR")):
        value = meta.get(key)
        if isinstance(value, str) and "\0" not in value:
            placed(values, (Path(value),), name)
    return Aliases(values)
