"""Lines that agents write into prompts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.prompts import change_prompts, without_dates, without_project, without_way_home


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Today's date is 2026-11-30.", "Today's date is (date)."),
        ("a\n  Today's date: Mon Nov 30 2026\nb", "a\n  Today's date: (date)\nb"),
        ("Today's date is Monday, November 30, 2026 (formatted", "Today's date is (date) (formatted"),
        ("Current date: 2026-11-30", "Current date: (date)"),
        ("<current_date>2026-11-30</current_date>", "<current_date>(date)</current_date>"),
        ("Current date: 2026-11-301", "Current date: 2026-11-301"),
        ("He said: Current date: 2026-11-30", "He said: Current date: 2026-11-30"),
        ("2026-11-30", "2026-11-30"),
        ("Current date: soon", "Current date: soon"),
    ],
)
def test_a_date_is_forgiven_only_behind_a_label_that_begins_its_line(text: str, left: str) -> None:
    """AGENTS 2: the four spellings."""
    assert without_dates(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("'../../home/me/.qwen/a.md'", "'~/.qwen/a.md'"),
        ("../.qwen/a.md", "~/.qwen/a.md"),
        ("src/../.qwen/a.md", "src/../.qwen/a.md"),
        ("../.qwenx", "../.qwenx"),
        ("../../other/a.md", "../../other/a.md"),
    ],
)
def test_a_way_home_is_forgiven_only_where_it_leads_to_the_agents_folder(text: str, left: str) -> None:
    """AGENTS 2, 5.4: Qwen Code names a file of HOME from the workspace."""
    assert without_way_home(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("is: /home/me/.gemini/tmp/my-app_2\n", "is: /home/me/.gemini/tmp/(project)\n"),
        ("(`/root/.gemini/tmp/x.y/memory/MEMORY.md`)", "(`/root/.gemini/tmp/(project)/memory/MEMORY.md`)"),
        ("/home/me/.gemini/settings.json", "/home/me/.gemini/settings.json"),
        ("/tmp/gemini/tmp/x", "/tmp/gemini/tmp/x"),
    ],
)
def test_a_projects_folder_is_forgiven_its_name(text: str, left: str) -> None:
    """AGENTS 2, 5.4: Gemini CLI names a folder of HOME after the last part of the workspace's path."""
    assert without_project(text) == left


@given(
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_any_document_passes(document: object) -> None:
    """Recorded bytes are anything."""
    for holder in ({}, {"messages": document}, {"system": document, "input": [document], "contents": [{"parts": document}]}):
        change_prompts(holder, str.upper)  # type: ignore[arg-type]  # any JSON
    change_prompts({"messages": [{"role": document, "content": [{"type": document, "text": "x"}]}]}, str.upper)  # type: ignore[dict-item]


def test_what_the_model_said_and_what_tools_gave_is_not_touched() -> None:
    """The module's promise."""
    document = {
        "system": "a",
        "messages": [
            {"role": "assistant", "content": "a"},
            {"role": "tool", "content": "a"},
            {"role": "user", "content": [{"type": "tool_result", "text": "a", "content": "a"}, {"type": "text", "text": "a"}]},
        ],
        "contents": [{"role": "model", "parts": [{"text": "a"}]}],
        "input": [{"type": "function_call_output", "role": "user", "output": "a"}],
    }
    changed = change_prompts(document, str.upper)  # type: ignore[arg-type]  # any JSON
    assert changed == {
        **document,
        "system": "A",
        "messages": [
            *document["messages"][:2],
            {"role": "user", "content": [{"type": "tool_result", "text": "a", "content": "a"}, {"type": "text", "text": "A"}]},
        ],
    }
