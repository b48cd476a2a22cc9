"""The rules that ship: what each wire format puts into a request that differs between two identical runs.

Measured on unmodified agents (two runs from a fresh HOME compared; what is dropped here is what made them equal). Each rule applies to
requests of one format, recognised by shape. Text rules touch tool results, and in prompts the lines that an agent writes there by itself
(prompts.py); never what a person or the model wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from secondtake.cassettes.canonical import Json
from secondtake.cassettes.normalise import Rule, Subject, rules_version
from secondtake.cassettes.prompts import change_prompts, without_dates, without_project, without_way_home
from secondtake.cassettes.rpc import without_ids

_USER_DATA = frozenset(("input", "input_schema", "arguments", "args", "parameters", "parametersJsonSchema"))
"""Members whose content belongs to a tool, not to the wire format: a field of the same name inside means something else."""


def _of(name: str) -> Callable[[Subject], bool]:
    return lambda subject: subject.format == name and subject.method == "POST"


def _objects(values: Json) -> Iterator[dict[str, Json]]:
    if isinstance(values, list):
        yield from (value for value in values if isinstance(value, dict))


# --- Anthropic Messages


def _drop_user_id(document: Json) -> Json:
    if isinstance(document, dict) and isinstance(metadata := document.get("metadata"), dict):
        metadata.pop("user_id", None)
        if not metadata:
            del document["metadata"]
    return document


_BILLING = re.compile(r"\bcch=[0-9A-Za-z]+")


def _drop_billing_hash(document: Json) -> Json:
    if isinstance(document, dict):
        for block in _objects(document.get("system")):
            text = block.get("text")
            if isinstance(text, str) and text.startswith("x-anthropic-billing-header:"):
                block["text"] = _BILLING.sub("cch=", text)
    return document


def _drop_cache_control(document: Json) -> Json:
    pending: list[Json] = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            value.pop("cache_control", None)
            pending.extend(inner for key, inner in value.items() if key not in _USER_DATA)
        elif isinstance(value, list):
            pending.extend(value)
    return document


# --- OpenAI Responses


def _drop_responses_ids(document: Json) -> Json:
    if isinstance(document, dict):
        document.pop("prompt_cache_key", None)
        document.pop("client_metadata", None)
        for item in _objects(document.get("input")):
            item.pop("internal_chat_message_metadata_passthrough", None)
            if item.get("type") != "item_reference":
                item.pop("id", None)
    return document


_EXEC = (
    (re.compile(r'("chunk_id":\s*)"[0-9a-f]+"'), r'\1""'),
    (re.compile(r'("wall_time_seconds":\s*)[0-9.eE+-]+'), r"\g<1>0"),
    (re.compile(r"^(Chunk ID: )[0-9a-f]+", re.MULTILINE), r"\1"),
    (re.compile(r"^(Wall time:? )[0-9.]+( seconds)", re.MULTILINE), r"\g<1>0\2"),
)


def _exec_text(text: str) -> str:
    for pattern, replacement in _EXEC:
        text = pattern.sub(replacement, text)
    return text


def _drop_exec_times(document: Json) -> Json:
    if isinstance(document, dict):
        for item in _objects(document.get("input")):
            kind = item.get("type")
            if isinstance(kind, str) and kind.endswith("_call_output"):
                _texts(item, "output", _exec_text)
    return document


def _texts(holder: dict[str, Json], key: str, change: Callable[[str], str]) -> None:
    """Change a text, or the `text` of each part of a list."""
    value = holder.get(key)
    if isinstance(value, str):
        holder[key] = change(value)
    for part in _objects(value):
        text = part.get("text")
        if isinstance(text, str):
            part["text"] = change(text)


# --- Gemini, and Chat Completions by agents that share its shell tool


_GROUP = re.compile(r"^(Process Group PGID: )\d+", re.MULTILINE)
_CLIENT_ID = re.compile(r"(run_shell_command)_\d{10,}_\d+")


def _drop_group(text: str) -> str:
    return _GROUP.sub(r"\1", text)


def _drop_gemini_shell(document: Json) -> Json:
    if isinstance(document, dict):
        for turn in _objects(document.get("contents")):
            for part in _objects(turn.get("parts")):
                result = part.get("functionResponse")
                if isinstance(result, dict) and isinstance(response := result.get("response"), dict):
                    _texts(response, "output", _drop_group)
                for call in (result, part.get("functionCall")):
                    if isinstance(call, dict) and isinstance(known := call.get("id"), str) and (found := _CLIENT_ID.fullmatch(known)):
                        call["id"] = found.group(1)
    return document


def _drop_chat_group(document: Json) -> Json:
    if isinstance(document, dict):
        for turn in _objects(document.get("messages")):
            if turn.get("role") == "tool":
                _texts(turn, "content", _drop_group)
    return document


# --- results of tools, in every format


_SUBAGENT = (
    # Claude Code
    (re.compile(r"^(agentId: )[0-9a-f]{8,}( \(use SendMessage with to: ')[0-9a-f]{8,}(?=')", re.MULTILINE), r"\1(agent)\2(agent)"),
    (re.compile(r"^(duration_ms: )\d+(?=</usage>)", re.MULTILINE), r"\g<1>0"),
    # opencode
    (re.compile(r'^(<task id=")ses_\w+(?=")'), r"\1(agent)"),
)


def _subagent_text(text: str) -> str:
    for pattern, replacement in _SUBAGENT:
        text = pattern.sub(replacement, text)
    return text


_SPENT = r"\d+(?:\.\d+)? ?(?:ms|µs|us|ns|s|secs?|seconds?|m|mins?|minutes?)\b(?: ?\d+(?:\.\d+)? ?(?:ms|s|secs?|seconds?)\b)?"
_TIMES = (
    # pytest, npm, cargo, unittest, vitest, jest: `in 0.03s`, `finished in 2 s`, `Time: 1.204 s`; and what programs say of themselves
    (re.compile(rf"\b(in|took|elapsed|duration|time)(:?[ \t]+)(?:about )?{_SPENT}", re.IGNORECASE), r"\1\2(time)"),
    # mocha, node, ctest: a time alone in brackets
    (re.compile(rf"\({_SPENT}\)"), "((time))"),
    # go test: the last word of a line
    (re.compile(r"\t\d+\.\d{2,3}s$", re.MULTILINE), "\t(time)"),
    # time(1), bash's `time`
    (re.compile(r"^(real|user|sys)([ \t]+)\d+(?:m\d+)?[.,]\d+s?$", re.MULTILINE), r"\1\2(time)"),
    # node --test
    (re.compile(r"\b(duration_ms:? )\d+(?:\.\d+)?"), r"\1(time)"),
)
"""How long a command took, where its output says so. A number without such a word before it, or brackets around it, is no time."""


def _spent_text(text: str) -> str:
    for pattern, replacement in _TIMES:
        text = pattern.sub(replacement, text)
    return text


def _in_results(change: Callable[[str], str]) -> Callable[[Json], Json]:
    """Change the texts of tool results, in whichever format."""

    def changed(document: Json) -> Json:
        if isinstance(document, dict):
            for turn in _objects(document.get("messages")):
                if turn.get("role") == "tool":
                    _texts(turn, "content", change)
                for block in _objects(turn.get("content")):
                    if block.get("type") == "tool_result":
                        _texts(block, "content", change)
            for item in _objects(document.get("input")):
                if item.get("type") == "function_call_output":
                    _texts(item, "output", change)
            for turn in _objects(document.get("contents")):
                for part in _objects(turn.get("parts")):
                    result = part.get("functionResponse")
                    if isinstance(result, dict) and isinstance(response := result.get("response"), dict):
                        for key in ("output", "result"):
                            _texts(response, key, change)
        return document

    return changed


# --- prompts, in every format


_PROMPTED = frozenset(("anthropic", "responses", "gemini", "chat"))


def _has_prompts(subject: Subject) -> bool:
    return subject.format in _PROMPTED and subject.method == "POST"


def _drop_dates(document: Json) -> Json:
    return change_prompts(document, without_dates)


def _drop_way_home(document: Json) -> Json:
    return change_prompts(document, without_way_home)


def _drop_project(document: Json) -> Json:
    return change_prompts(document, without_project)


# --- git smart HTTP


_CAPABILITY = re.compile(rb"[ \n]?\b(?:agent|session-id)=[^ \n\x00]*")


def _is_git_rpc(subject: Subject) -> bool:
    return subject.method == "POST" and subject.path.endswith((b"/git-upload-pack", b"/git-receive-pack"))


def pkt_lines(content: bytes) -> tuple[list[bytes], bytes] | None:
    """Lines of git's pkt-line format up to its last flush, and the bytes behind; None when it is something else.

    Control packets are kept as their four digits. Source: gitprotocol-common, gitprotocol-v2.
    """
    lines: list[bytes] = []
    at = 0
    while at < len(content):
        digits = content[at : at + 4]
        if digits == b"PACK" and lines:
            break
        try:
            size = int(digits, 16)
        except ValueError:
            return None
        if len(digits) < 4 or size == 3 or at + max(size, 4) > len(content):
            return None
        lines.append(digits if size < 4 else content[at + 4 : at + size])
        at += max(size, 4)
    return lines, content[at:]


def _git_body(content: bytes) -> bytes:
    found = pkt_lines(content)
    if found is None:
        return content
    lines, behind = found
    pushes = bool(behind) or any(b"refs/" in line and line[40:41] == b" " for line in lines)
    kept = [_CAPABILITY.sub(b"", line) if _carries_capabilities(line) else line for line in lines]
    # A push is compared by its ref lines: the pack behind them depends on the number of threads that made it.
    tail = b"" if pushes else behind
    return b"".join(b"%d:" % len(line) + line for line in kept if line.strip()) + tail


def _carries_capabilities(line: bytes) -> bool:
    return line.startswith((b"agent=", b"session-id=", b"want ")) or b"\x00" in line


RULES: tuple[Rule, ...] = (
    Rule("anthropic-user-id", 1, "metadata.user_id holds device and session ids", _of("anthropic"), _drop_user_id),
    Rule("anthropic-billing-hash", 1, "cch= in the billing block of system changes per request", _of("anthropic"), _drop_billing_hash),
    Rule("anthropic-cache-control", 1, "cache marks move to the newest turns", _of("anthropic"), _drop_cache_control),
    Rule("responses-ids", 1, "prompt_cache_key, client_metadata, ids of input items", _of("responses"), _drop_responses_ids),
    Rule("responses-exec", 1, "chunk id and wall time in shell results", _of("responses"), _drop_exec_times),
    Rule("gemini-shell", 1, "process group and client-made call ids of the shell tool", _of("gemini"), _drop_gemini_shell),
    Rule("chat-shell", 1, "process group in shell results", _of("chat"), _drop_chat_group),
    Rule("subagent", 1, "a sub-agent's id, and how long it took, where its result says so", _has_prompts, _in_results(_subagent_text)),
    Rule("result-times", 1, "how long a command took, where its output in a tool's result says so", _has_prompts, _in_results(_spent_text)),
    Rule("prompt-date", 1, "the date in a line that an agent writes into its prompts", _has_prompts, _drop_dates),
    Rule("chat-way-home", 1, "the relative way from the workspace to a file of ~/.qwen", _of("chat"), _drop_way_home),
    Rule("gemini-project", 1, "the workspace's name in paths below ~/.gemini/tmp", _of("gemini"), _drop_project),
    Rule("rpc-ids", 1, "JSON-RPC ids and progress tokens are their sender's own count", _of("rpc"), without_ids),
    Rule("git-capabilities", 1, "agent= and session-id= of git bodies; a push by its ref lines", _is_git_rpc, None, _git_body),
)
"""Every rule, in the order they are applied."""

VERSION = rules_version(RULES)
"""The name of this list; `Keys.rules` says it."""
