"""The scripted provider as a program of its own."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import subprocess
import sys
from pathlib import Path

from secondtake.harness.provider import Reply, Scene, Script
from tests.harness.wires import post

ROOT = Path(__file__).resolve().parents[3]
BODY = {"model": "model-1", "max_tokens": 10, "messages": [{"role": "user", "content": "x"}]}
SCRIPT = Script((Scene((Reply("Hello."),)),))


def test_the_program_says_when_it_is_ready_and_ends_on_an_interrupt(tmp_path: Path) -> None:
    """`python -m secondtake.harness.provider SCRIPT`: one JSON line, exit 0 after SIGINT, 64 and one line for a bad script."""
    script = tmp_path / "script.toml"
    script.write_text('[[scene]]\nturn = [{ text = "Hello." }]\n')
    command = [sys.executable, "-m", "secondtake.harness.provider", str(script), "--make-ca", str(tmp_path / "ca.pem")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / ".src")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        ready = json.loads(program.stdout.readline())
        tls = ssl.create_default_context(cafile=ready["ca"])
        got = asyncio.run(post(int(ready["base_url"].rsplit(":", 1)[1]), "/v1/messages", BODY, tls=tls))
        assert got.json["content"][0]["text"] == "Hello."
        program.send_signal(signal.SIGINT)
    assert program.returncode == 0
    script.write_text("turn = 1")
    done = subprocess.run([*command[:3], str(script)], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (64, "error: script: unknown key `turn`\n")
