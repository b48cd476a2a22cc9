"""The ordered log of a recording as rows to read."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import assert_never

from secondtake.cassettes.events import Event, EventKind
from secondtake.cli.render.words import count, duration

HEADINGS = (">at", ">exchange", "event", "model", "what")

SHOWN_CHARACTERS = 120


def row(event: Event) -> list[str]:
    """Return one event as the cells of HEADINGS."""
    exchange = "" if event.exchange is None else str(event.exchange)
    return [duration(event.offset_us), exchange, str(event.event), event.model or "", _cut(_what(event.event, event.data))]


def _what(kind: EventKind, data: Mapping[str, object]) -> str:
    match kind:
        case EventKind.MODEL_REQUEST:
            tools = data.get("tools")
            offered = len(tools) if isinstance(tools, list) else 0
            return f"{data.get('adapter')}, {_counted(data.get('turns'), 'turn')}, {count(offered, 'tool')}"
        case EventKind.MODEL_RESPONSE:
            return _answered(data)
        case EventKind.TOOL_CALL:
            return f"{data.get('tool')} {data.get('arguments') or data.get('arguments_sha256') or ''}"
        case EventKind.TOOL_RESULT:
            code = data.get("exit_code")
            failed = " failed" if data.get("is_error") else ""
            called = data.get("call_exchange")
            whence = f", called in {called}" if called is not None else ", nobody called it"
            return f"{data.get('tool')}{failed}{'' if code is None else f', exit code {code}'}{whence}"
        case EventKind.RETRY:
            return f"attempt {data.get('attempt')}, after exchange {data.get('of')}: {data.get('after')}"
        case EventKind.MISS:
            return f"{data.get('kind') or 'miss'}: {data.get('method')} {data.get('url')}"
        case EventKind.STREAM_ERROR:
            return f"{data.get('reason')} ({data.get('ended')})"
        case EventKind.SIGNAL:
            return f"{data.get('signal')}: {data.get('detail')}"
        case EventKind.UNREAD:
            return f"{data.get('reason')}: {data.get('url')}"
        case EventKind.MCP_CALL:
            return f"{_mcp(data)} {data.get('arguments') or data.get('arguments_sha256') or ''}"
        case EventKind.MCP_RESULT:
            failed = f" failed: {data.get('error') or 'by its own word'}" if data.get("is_error") else ""
            return f"{_mcp(data)}{failed}{'' if data.get('answered') == 'live' else f', answered {data.get("answered")}'}"
        case EventKind.STOP:
            return str(data.get("reason"))
        case EventKind.START:
            return _words(data)
        case EventKind.EXEC:
            code = data.get("exit_code")
            ended = f", signal {data['signal']}" if data.get("signal") is not None else "" if code in {0, None} else f", exit code {code}"
            return f"{'' if data.get('mark') == 'matched' else f'{data.get("mark")}: '}{_words(data)}{ended}"
        case EventKind.ESCAPE:
            port = data.get("port")
            return f"refused {data.get('kind')} to {data.get('name') or data.get('address')}{'' if port is None else f':{port}'}"
        case EventKind.EXIT:
            return f"exit code {data.get('exit_code')}{'' if not data.get('stopped') else f', stopped by {data["stopped"]}'}"
        case EventKind.VERDICT:
            invalid = f" (invalid: {data['invalid']})" if data.get("invalid") else ""
            return f"{data.get('outcome')}{invalid}: {data.get('reason')}; {data.get('control')}"
        case _:
            assert_never(kind)


def _mcp(data: Mapping[str, object]) -> str:
    what = data.get("tool") or data.get("method") or "a reply"
    return f"{data.get('server')}: {what}"


def _words(data: Mapping[str, object]) -> str:
    argv = data.get("argv")
    return shlex.join(map(str, argv)) if isinstance(argv, list) else ""


def _answered(data: Mapping[str, object]) -> str:
    served = data.get("served")
    usage = data.get("usage")
    parts = [f"{data.get('status') or 'no answer'} {data.get('outcome')}"]
    if data.get("stop"):
        parts.append(f"stop {data['stop']}")
    if isinstance(served, list) and served:
        parts.append(f"served by {', '.join(dict.fromkeys(map(str, served)))}")
    if isinstance(usage, dict) and usage.get("output") is not None:
        parts.append(f"{usage.get('input')} in, {usage['output']} out")
    if data.get("answered") != "live":
        parts.append(f"answered {data.get('answered')}")
    return ", ".join(parts)


def _counted(number: object, one: str) -> str:
    return count(number if isinstance(number, int) else 0, one)


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN_CHARACTERS else line[: SHOWN_CHARACTERS - 1] + "…"
