"""Exit codes as each agent writes them; the samples are of the forms measured on real agents."""

from __future__ import annotations

import pytest

from secondtake.cassettes.exit_codes import exit_code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Exit code 3\nout\nerr", 3),
        ("Exit code 127", 127),
        ("hello", None),
        ("out\nerr\n", None),
        ("Chunk ID: f7c1ef\nWall time: 0.0000 seconds\nProcess exited with code 3\nOriginal token count: 2\nOutput:\nout\n", 3),
        ("Chunk ID: f7c1ef\nWall time: 0.0 seconds\nProcess exited with code 0\nOutput:\nProcess exited with code 9\n", 0),
        ('Script completed\nWall time 0.1 seconds\nOutput:\n{"chunk_id":"a","exit_code":3,"output":"out"}', 3),
        ("<untrusted_context>\nOutput: out\nerr\nExit Code: 3\nProcess Group PGID: 22867\n</untrusted_context>", 3),
        (
            "Command: x\nOutput: Exit Code: 5\nExit Code: 5 no\nError: (none)\nExit Code: 0\nSignal: 0\nProcess Group PGID: 1",
            0,
        ),
        ("out\nerr\n\n\nCommand exited with code 3", 3),
        ('{\n  "returncode": 3,\n  "output": "out\\nerr\\n"\n}', 3),
        ('{"returncode": true}', None),
        ('{"a": {"exit_code": 3}}', None),
        ("it said: Exit code 3", None),
        ("Command exited with code 3\nand more", None),
        ('{"exit_code": ' + "[" * 50_000, None),
        ('{"exit_code": ' + "9" * 5000 + "}", None),
        ("", None),
    ],
)
def test_an_exit_code_is_read_where_its_agent_writes_it(text: str, code: int | None) -> None:
    """AGENTS 5, point 15: no number means "not said", never zero."""
    assert exit_code(text) == code
