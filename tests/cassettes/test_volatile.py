"""The rules that ship: each forgives its own place in its own format, and nothing else."""

from __future__ import annotations

import json

import pytest

from secondtake.cassettes.exchange import Request
from secondtake.cassettes.match import meaning, request_keys
from secondtake.cassettes.memory import digest_of, fields
from secondtake.cassettes.normalise import Rule, rules_version
from secondtake.cassettes.volatile import RULES, VERSION, pkt_lines


def key(path: str, document: object, rules: tuple[Rule, ...] = RULES, host: str = "api.provider.example") -> bytes:
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    request = Request("POST", "https", host, 443, path.encode(), fields=fields("Content-Type: application/json"))
    return request_keys(request, content, digest=digest_of(content), rules=rules).normal


ANTHROPIC = "/v1/messages?beta=true"
RESPONSES = "/v1/responses"
GEMINI = "/v1beta/models/m-1:streamGenerateContent?alt=sse"
CHAT = "/v1/chat/completions"


def anthropic(**more: object) -> dict[str, object]:
    return {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}], **more}


def responses(*items: object, **more: object) -> dict[str, object]:
    return {"model": "m", "input": [{"type": "message", "role": "user", "content": "hi"}, *items], **more}


def gemini(*parts: object) -> dict[str, object]:
    return {"contents": [{"role": "user", "parts": [{"text": "hi"}]}, {"role": "user", "parts": list(parts)}]}


def chat(*turns: object) -> dict[str, object]:
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}, *turns]}


def billing(cch: str) -> dict[str, object]:
    text = f"x-anthropic-billing-header: cc_version=2.1.197.2bb; cc_entrypoint=sdk-cli; cch={cch};"
    return anthropic(system=[{"type": "text", "text": text}, {"type": "text", "text": "You are"}])


def marked(index: int) -> dict[str, object]:
    turns: list[dict[str, object]] = [{"role": "user", "content": [{"type": "text", "text": str(n)}]} for n in range(3)]
    turns[index]["content"][0]["cache_control"] = {"type": "ephemeral"}  # type: ignore[index]  # a list of blocks
    return {**anthropic(), "messages": turns}


def executed(chunk: str, wall: str) -> dict[str, object]:
    classic = {"type": "function_call_output", "call_id": "c", "output": f"Chunk ID: {chunk}\nWall time: {wall} seconds\nOutput:\nout\n"}
    inner = json.dumps({"chunk_id": chunk, "wall_time_seconds": float(wall), "exit_code": 3, "output": "out"})
    lite = {
        "type": "custom_tool_call_output",
        "call_id": "d",
        "output": [
            {"type": "input_text", "text": f"Script completed\nWall time {wall} seconds\nOutput:\n"},
            {"type": "input_text", "text": inner},
        ],
    }
    return responses(classic, lite)


def shell(pid: int, ms: int) -> dict[str, object]:
    name = f"run_shell_command_{ms}_0"
    text = f"<untrusted_context>\nOutput: out\nExit Code: 3\nProcess Group PGID: {pid}\n</untrusted_context>"
    return gemini(
        {"functionCall": {"id": name, "name": "run_shell_command", "args": {"command": "ls"}}},
        {"functionResponse": {"id": name, "name": "run_shell_command", "response": {"output": text}}},
    )


def delegated(text: str) -> list[tuple[str, dict[str, object]]]:
    """A tool's result in each format, as text or in parts."""
    parts = [{"type": "text", "text": "There are three."}, {"type": "text", "text": text}]
    block = {"type": "tool_result", "tool_use_id": "c"}
    output = {"type": "function_call_output", "call_id": "c", "output": text}
    return [
        (ANTHROPIC, anthropic(messages=[{"role": "user", "content": [{**block, "content": parts}]}])),
        (ANTHROPIC, anthropic(messages=[{"role": "user", "content": [{**block, "content": text}]}])),
        (RESPONSES, responses(output)),
        (GEMINI, gemini({"functionResponse": {"name": "task", "response": {"output": text}}})),
        (CHAT, chat({"role": "tool", "tool_call_id": "c", "content": text})),
    ]


def by_claude(agent: str, ms: int) -> str:
    how = f"agentId: {agent} (use SendMessage with to: '{agent}', summary: '<5-10 word recap>' to continue this agent)"
    return f"{how}\n<usage>subagent_tokens: 6229\ntool_uses: 1\nduration_ms: {ms}</usage>"


def by_opencode(session: str) -> str:
    return f'<task id="{session}" state="completed">\n<task_result>\nThere are three.\n</task_result>\n</task>'


def dated(date: str) -> list[tuple[str, dict[str, object]]]:
    """Where agents write the date, in each format (AGENTS 2)."""
    reminder = {"type": "text", "text": f"<system-reminder>\n# currentDate\nToday's date is {date}.\n</system-reminder>"}
    return [
        (ANTHROPIC, anthropic(messages=[{"role": "user", "content": [reminder, {"type": "text", "text": "hi"}]}])),
        (ANTHROPIC, anthropic(system=[{"type": "text", "text": f"<env>\n  Today's date: {date}\n</env>"}])),
        (ANTHROPIC, anthropic(system=f"You are.\nCurrent date: {date}\nCurrent working directory: /w")),
        (RESPONSES, responses({"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"<current_date>{date}<"}]})),
        (RESPONSES, responses(instructions=f"Current date: {date}")),
        (GEMINI, gemini({"text": f"Today's date is {date} (formatted according to the user's locale)."})),
        (CHAT, chat({"role": "system", "content": f"- Current date: {date}"})),
    ]


DATES = ("2026-11-30", "Monday, November 30, 2026", "Mon Nov 30 2026")
LATER = ("2027-01-01", "Friday, January 1, 2027", "Fri Jan 01 2027")


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        *(
            (path, one, other)
            for date, later in zip(DATES, LATER, strict=True)
            for (path, one), (_, other) in zip(dated(date), dated(later), strict=True)
        ),
        *(
            (path, one, other)
            for first, second in (
                (by_claude("a2047346f51787b02", 186), by_claude("af3e89e5157b815bf", 1186)),
                (by_opencode("ses_dd4a414e1ffeh5qkb27Y5wSShS"), by_opencode("ses_dd4a3aacbffebtqjM91e4ElrJq")),
            )
            for (path, one), (_, other) in zip(delegated(first), delegated(second), strict=True)
        ),
        (
            CHAT,
            chat({"role": "user", "content": "in ../../home/me/.qwen/output-language.md now"}),
            chat({"role": "user", "content": "in ../.qwen/output-language.md now"}),
        ),
        (GEMINI, gemini({"text": "in /home/me/.gemini/tmp/one now"}), gemini({"text": "in /home/me/.gemini/tmp/two now"})),
        (ANTHROPIC, anthropic(metadata={"user_id": "a"}), anthropic(metadata={"user_id": "b"})),
        (ANTHROPIC, billing("8ce76"), billing("1f0aa")),
        (ANTHROPIC, marked(0), marked(2)),
        (ANTHROPIC, anthropic(), anthropic(cache_control={"type": "ephemeral"})),
        (
            RESPONSES,
            responses({"type": "reasoning", "id": "a", "internal_chat_message_metadata_passthrough": {"t": 1}}, prompt_cache_key="x"),
            responses({"type": "reasoning", "id": "b"}, prompt_cache_key="y", client_metadata={"z": 1}),
        ),
        (RESPONSES, executed("f7c1ef", "0.0123"), executed("00aa11", "1.5")),
        (GEMINI, shell(22867, 1764460000123), shell(4, 1764469999999)),
        (
            CHAT,
            chat({"role": "tool", "tool_call_id": "c", "content": "Exit Code: 3\nProcess Group PGID: 21622"}),
            chat({"role": "tool", "tool_call_id": "c", "content": "Exit Code: 3\nProcess Group PGID: 9"}),
        ),
    ],
)
def test_what_differs_between_two_equal_runs_is_forgiven(path: str, one: object, other: object) -> None:
    """AGENTS 5.1: and without the rules it is a difference."""
    assert key(path, one) == key(path, other)
    assert key(path, one, ()) != key(path, other, ())


@pytest.mark.parametrize(
    ("path", "one", "other"),
    [
        # another format, the same member
        (CHAT, {**chat(), "metadata": {"user_id": "a"}}, {**chat(), "metadata": {"user_id": "b"}}),
        (CHAT, {**chat(), "prompt_cache_key": "a"}, {**chat(), "prompt_cache_key": "b"}),
        (ANTHROPIC, anthropic(client_metadata={"a": 1}), anthropic(client_metadata={"a": 2})),
        (RESPONSES, responses(cache_control="a"), responses(cache_control="b")),
        (RESPONSES, responses(metadata={"user_id": "a"}), responses(metadata={"user_id": "b"})),
        ("/api/things", {"metadata": {"user_id": "a"}}, {"metadata": {"user_id": "b"}}),
        ("/api/things", {"input": [{"id": "a"}]}, {"input": [{"id": "b"}]}),
        ("/v1/embeddings", {"model": "m", "input": [{"id": "a"}]}, {"model": "m", "input": [{"id": "b"}]}),
        (
            ANTHROPIC,
            anthropic(system="../../home/me/.qwen/x"),
            anthropic(system="../.qwen/x"),
        ),
        (ANTHROPIC, anthropic(system="/home/me/.gemini/tmp/one"), anthropic(system="/home/me/.gemini/tmp/two")),
        (CHAT, chat({"role": "user", "content": "/h/.gemini/tmp/one"}), chat({"role": "user", "content": "/h/.gemini/tmp/two"})),
        # the same format, another place
        (
            GEMINI,
            gemini({"functionCall": {"id": "c", "args": {"path": "/h/.gemini/tmp/one"}}}),
            gemini({"functionCall": {"id": "c", "args": {"path": "/h/.gemini/tmp/two"}}}),
        ),
        (ANTHROPIC, anthropic(system="Written on 2026-11-30"), anthropic(system="Written on 2026-12-01")),
        (ANTHROPIC, anthropic(system="Say: Today's date is 2026-11-30"), anthropic(system="Say: Today's date is 2026-12-01")),
        (ANTHROPIC, anthropic(system="Today's date is unknown"), anthropic(system="Today's date is known")),
        (
            CHAT,
            chat({"role": "tool", "content": "Current date: 2026-11-30"}),
            chat({"role": "tool", "content": "Current date: 2026-12-01"}),
        ),
        (
            CHAT,
            chat({"role": "assistant", "content": "Current date: 2026-11-30"}),
            chat({"role": "assistant", "content": "Current date: 2026-12-01"}),
        ),
        (
            ANTHROPIC,
            anthropic(messages=[{"role": "user", "content": [{"type": "tool_result", "content": "Current date: 2026-11-30"}]}]),
            anthropic(messages=[{"role": "user", "content": [{"type": "tool_result", "content": "Current date: 2026-12-01"}]}]),
        ),
        ("/api/things", {"system": "Current date: 2026-11-30"}, {"system": "Current date: 2026-12-01"}),
        (ANTHROPIC, anthropic(metadata={"user_id": "a", "k": 1}), anthropic(metadata={"user_id": "a", "k": 2})),
        (
            ANTHROPIC,
            anthropic(system=[{"type": "text", "text": "say cch=1"}]),
            anthropic(system=[{"type": "text", "text": "say cch=2"}]),
        ),
        (
            ANTHROPIC,
            anthropic(tools=[{"name": "t", "input_schema": {"properties": {"cache_control": {"type": "string"}}}}]),
            anthropic(tools=[{"name": "t", "input_schema": {"properties": {}}}]),
        ),
        (
            ANTHROPIC,
            anthropic(
                messages=[{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {"cache_control": 1}}]}]
            ),
            anthropic(messages=[{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]}]),
        ),
        (RESPONSES, responses({"type": "item_reference", "id": "a"}), responses({"type": "item_reference", "id": "b"})),
        (RESPONSES, responses({"type": "function_call", "call_id": "a"}), responses({"type": "function_call", "call_id": "b"})),
        (
            RESPONSES,
            responses({"type": "message", "role": "user", "content": "Wall time: 1 seconds"}),
            responses({"type": "message", "role": "user", "content": "Wall time: 2 seconds"}),
        ),
        (GEMINI, gemini({"text": "Process Group PGID: 1"}), gemini({"text": "Process Group PGID: 2"})),
        (GEMINI, gemini({"functionCall": {"id": "call_1"}}), gemini({"functionCall": {"id": "call_2"}})),
        (
            CHAT,
            chat({"role": "user", "content": "Process Group PGID: 1"}),
            chat({"role": "user", "content": "Process Group PGID: 2"}),
        ),
    ],
)
def test_no_rule_touches_another_place_or_another_format(path: str, one: object, other: object) -> None:
    """AGENTS 5.1: a rule that forgives too much serves a wrong answer."""
    assert key(path, one) != key(path, other)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ({"id": 1, "method": "tools/list"}, {"id": "a", "method": "tools/list"}, True),
        ({"id": 1, "method": "tools/list"}, {"id": 1, "method": "tools/call"}, False),
        ({"id": 1, "method": "a", "params": {"_meta": {"progressToken": 1}}}, {"id": 2, "method": "a", "params": {}}, True),
        ({"id": 1, "method": "a", "params": {"_meta": {"x": 1}}}, {"id": 2, "method": "a", "params": {"_meta": {"x": 2}}}, False),
        ({"method": "notifications/cancelled", "params": {"requestId": 1}}, {"method": "notifications/cancelled", "params": {}}, True),
        ({"id": 1, "method": "a", "params": {"requestId": 1}}, {"id": 1, "method": "a", "params": {"requestId": 2}}, False),
        ({"id": 1, "result": {"id": 1}}, {"id": 2, "result": {"id": 2}}, False),
    ],
)
def test_ids_of_json_rpc_do_not_count(one: dict[str, object], other: dict[str, object], same: bool) -> None:
    """Issue 4, items 2 and 6: ids and progress tokens are their sender's own count."""
    assert (key("/mcp", {"jsonrpc": "2.0", **one}) == key("/mcp", {"jsonrpc": "2.0", **other})) is same
    batches = [[{"jsonrpc": "2.0", **message}] for message in (one, other)]
    assert (key("/mcp", batches[0]) == key("/mcp", batches[1])) is same


def test_every_rule_has_a_test_that_shows_what_it_does() -> None:
    """The list here and the list that ships are one."""
    assert [rule.name for rule in RULES] == [
        "anthropic-user-id",
        "anthropic-billing-hash",
        "anthropic-cache-control",
        "responses-ids",
        "responses-exec",
        "gemini-shell",
        "chat-shell",
        "subagent",
        "result-times",
        "prompt-date",
        "chat-way-home",
        "gemini-project",
        "rpc-ids",
        "git-capabilities",
    ]
    assert all(rule.why and rule.version >= 1 for rule in RULES)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("== 3 passed in 0.03s ==", "== 3 passed in 12.61s =="),
        ("Ran 3 tests in 0.001s", "Ran 3 tests in 1.204s"),
        ("added 66 packages in 2s", "added 66 packages in 1m 3s"),
        ("test result: ok; finished in 0.00s", "test result: ok; finished in 0.41s"),
        ("ok  \tbill\t0.003s\nok  \tsplit\t1.20s", "ok  \tbill\t0.911s\nok  \tsplit\t0.02s"),
        ("✓ splits (15ms)", "✓ splits (2 ms)"),
        ("Time:        1.204 s", "Time:        0.9 s"),
        ("# duration_ms 43.118", "# duration_ms 9.5"),
        ("real\t0m0.003s\nuser\t0m0.001s", "real\t1m2.300s\nuser\t0m0.912s"),
        ("Done, took 350ms.", "Done, took about 2 minutes."),
    ],
)
def test_how_long_a_command_took_does_not_tell_two_results_apart(one: str, other: str) -> None:
    """AGENTS 2: test runners and package managers say it, and it differs each time."""
    for (adapter, a), (_, b) in zip(delegated(one), delegated(other), strict=True):
        assert key(adapter, a) == key(adapter, b), (adapter, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("timeout = 30s", "timeout = 60s"),
        ("3 passed, 1 failed in 0.03s", "4 passed in 0.03s"),
        ("sleep 5", "sleep 6"),
        ("in 3 files", "in 4 files"),
        ("retry after 30s", "retry after 60s"),
        ("f(1)", "f(2)"),
    ],
)
def test_other_numbers_in_a_result_do(one: str, other: str) -> None:
    """T-A10: a wrong answer is worse than a miss."""
    for (adapter, a), (_, b) in zip(delegated(one), delegated(other), strict=True):
        assert key(adapter, a) != key(adapter, b), (adapter, one)


def test_a_time_in_what_a_person_or_the_model_says_counts() -> None:
    """Only tools' results: the task is the task."""
    said = [anthropic(messages=[{"role": "user", "content": f"make it run in {time}"}]) for time in ("2 s", "3 s")]
    assert key(ANTHROPIC, said[0]) != key(ANTHROPIC, said[1])


def test_the_version_changes_with_the_list() -> None:
    """Keys made by another list are made anew."""
    assert rules_version(RULES) == VERSION
    assert rules_version(RULES[:-1]) != VERSION


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        {"messages": None},
        {"model": 1, "input": 2},
        {"contents": [{"parts": None}]},
        {"messages": [1]},
        {"model": "m", "max_tokens": 1, "messages": [{"role": [], "content": [{"type": {}, "text": "Current date: 2026-11-30"}]}]},
        {"system": [None], "messages": [{"role": 1}], "model": "m", "max_tokens": 1},
    ],
)
def test_documents_of_no_or_odd_shape_pass_untouched(document: object) -> None:
    """Hostile input: recorded bytes are anything."""
    for path in (ANTHROPIC, RESPONSES, GEMINI, CHAT):
        assert key(path, document) == key(path, document, ())


@pytest.mark.parametrize("content", [b"zzzz", b"0003", b"00", b"ffff", b"0009don"])
def test_what_is_no_pkt_line_stays_as_it_is(content: bytes) -> None:
    """T-R7."""
    assert pkt_lines(content) is None
    request = Request("POST", "https", "git.example", 443, b"/r.git/git-upload-pack")
    assert meaning(request, content).content == content


def test_an_agent_in_a_want_line_is_forgiven_and_its_other_capabilities_are_not() -> None:
    """T-R7: protocol version 0."""

    def want(*capabilities: str) -> bytes:
        line = b"want " + b"a" * 40 + b" " + " ".join(capabilities).encode() + b"\n"
        return b"%04x" % (len(line) + 4) + line + b"00000009done\n"

    one, other = want("ofs-delta", "agent=git/2.1", "session-id=a"), want("ofs-delta", "agent=git/2.47.1", "session-id=bb")
    path = "/r.git/git-upload-pack"
    assert key(path, one) == key(path, other)
    assert key(path, one) != key(path, want("agent=git/2.1"))
    assert key("/other", one) != key("/other", other)
