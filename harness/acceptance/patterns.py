"""Regular expressions from a fixture, which a stranger may have written: what could take for ever runs in a process that can be ended."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Sequence

from secondtake.cassettes.errors import TooLarge

TIMEOUT_S = 20.0
TEXT_CHARACTERS = 8 * 1024 * 1024
_SIMPLE_CHARACTERS = 20_000
_PROGRAM = """\
import json, re, sys
patterns, texts = json.loads(sys.stdin.read())
made = [re.compile(one, re.MULTILINE) for one in patterns]
json.dump([next((i for i, one in enumerate(made) if one.search(text)), None) for text in texts], sys.stdout)
"""


async def search(patterns: Sequence[str], texts: Sequence[str], *, timeout_s: float = TIMEOUT_S) -> list[int | None]:
    """For each text the first of `patterns` that is found in it (lines begin at `^`), None where none is.

    Raises:
        TooLarge: it took longer than `timeout_s`, or there is more text than a pattern is tried on.
    """
    size = sum(map(len, texts))
    if size > TEXT_CHARACTERS:
        raise TooLarge(f"{size} characters; a pattern is tried on at most {TEXT_CHARACTERS}")
    if all(map(_quick, patterns)) and size <= _SIMPLE_CHARACTERS:
        made = [re.compile(one, re.MULTILINE) for one in patterns]
        return [next((index for index, one in enumerate(made) if one.search(text)), None) for text in texts]
    return await _apart(patterns, texts, timeout_s)


def _quick(pattern: str) -> bool:
    """At most one thing in it repeats: then the time is at most the square of the text's length."""
    return sum(pattern.count(sign) for sign in "*+{") <= 1


async def _apart(patterns: Sequence[str], texts: Sequence[str], timeout_s: float) -> list[int | None]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", _PROGRAM, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(timeout_s):
            said, _ = await child.communicate(json.dumps([list(patterns), list(texts)]).encode())
    except TimeoutError:
        raise TooLarge(f"a pattern took longer than {timeout_s:g} s") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0:
        raise TooLarge("a pattern could not be tried")
    found: list[int | None] = json.loads(said)
    return found
