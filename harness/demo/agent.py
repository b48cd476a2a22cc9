"""A small coding agent, on the standard library alone. It knows nothing of recording: it is the demo's "unmodified agent".

It speaks the Messages format, streamed, to $ANTHROPIC_BASE_URL with $ANTHROPIC_API_KEY; `urllib` takes the proxy from $HTTPS_PROXY
and `ssl` the trusted authorities from $SSL_CERT_FILE. Usage: agent.py [--model ID] TASK, in the repository to work on.
Ends with 0 when the model is done, 1 when a call failed, 2 when the model did not come to an end.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TURNS = 20
TIMEOUT_S = 60
SYSTEM = "You are a coding agent. Work in the current directory with the tools you have. Say what you did when you are done."


def _tool(name: str, description: str, *arguments: str) -> dict[str, Any]:
    properties = {argument: {"type": "string"} for argument in arguments}
    schema = {"type": "object", "properties": properties, "required": list(arguments)}
    return {"name": name, "description": description, "input_schema": schema}


TOOLS = [
    _tool("read_file", "Read a text file.", "path"),
    _tool("write_file", "Write a text file, replacing what is there.", "path", "content"),
    _tool("run", "Run a shell command; returns its output and, if not 0, its exit code.", "command"),
]


class Failed(Exception):
    """A model call did not give an answer."""


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


def events(response: Any) -> Iterator[dict[str, Any]]:
    """The data of each server-sent event, as it comes."""
    data: list[str] = []
    for raw in response:
        line = raw.decode().rstrip("\r\n")
        if line.startswith("data:"):
            data.append(line[5:].strip())
        elif not line and data:
            yield json.loads("\n".join(data))
            data = []


def call(model: str, messages: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], str]:
    """One model call: the content blocks and the stop reason. Text is printed as it arrives."""
    body = {"model": model, "max_tokens": 4096, "stream": True, "system": SYSTEM, "tools": TOOLS, "messages": messages}
    request = urllib.request.Request(  # noqa: S310 - the user names the URL
        os.environ.get("ANTHROPIC_BASE_URL", "https://api.provider.example").rstrip("/") + "/v1/messages",
        data=json.dumps(body).encode(),
        headers={
            "content-type": "application/json",
            "anthropic-version": "2023-06-01",
            "x-api-key": os.environ.get("ANTHROPIC_API_KEY", ""),
            "user-agent": "demo-agent/1",
        },
    )
    blocks: list[dict[str, Any]] = []
    written: dict[int, str] = {}
    stop = ""
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310 - as above
            for event in events(response):
                kind = event.get("type")
                if kind == "content_block_start":
                    blocks.append(event["content_block"])
                elif kind == "content_block_delta" and event["delta"]["type"] == "text_delta":
                    blocks[event["index"]]["text"] += event["delta"]["text"]
                    say(event["delta"]["text"])
                elif kind == "content_block_delta" and event["delta"]["type"] == "input_json_delta":
                    written[event["index"]] = written.get(event["index"], "") + event["delta"]["partial_json"]
                elif kind == "message_delta":
                    stop = event["delta"]["stop_reason"]
                elif kind == "error":
                    raise Failed(event["error"]["message"])
                elif kind == "message_stop":
                    break
            else:
                raise Failed("the answer was cut short")
    except urllib.error.HTTPError as error:
        raise Failed(f"HTTP {error.code}: {_message(error.read())}") from error
    except (OSError, ValueError) as error:
        raise Failed(str(error)) from error
    for index, text in written.items():
        blocks[index]["input"] = json.loads(text or "{}")
    if any(block["type"] == "text" for block in blocks):
        say("\n")
    return blocks, stop


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return body.decode(errors="replace")


def use(name: str, given: dict[str, Any]) -> tuple[str, bool]:
    """A tool's result, and whether it failed."""
    try:
        if name == "read_file":
            return Path(given["path"]).read_text(encoding="utf-8"), False
        if name == "write_file":
            Path(given["path"]).write_text(given["content"], encoding="utf-8")
            return "written", False
        if name == "run":
            return run(given["command"])
    except (OSError, KeyError, ValueError) as error:
        return f"{type(error).__name__}: {error}", True
    return f"no such tool: {name}", True


def run(command: str) -> tuple[str, bool]:
    """A shell command's output, both streams as they came; after the time limit its whole group is killed."""
    child = subprocess.Popen(
        ["/bin/sh", "-c", command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = child.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()
        return f"no end after {TIMEOUT_S} s", True
    text = output.decode(errors="replace")
    return (text, False) if child.returncode == 0 else (f"{text}Exit code {child.returncode}", True)


def main() -> int:
    """Ask, use the tools, ask again, until the model is done."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=os.environ.get("ANTHROPIC_MODEL", "hasty-20260101"))
    parser.add_argument("task")
    options = parser.parse_args()
    messages: list[dict[str, Any]] = [{"role": "user", "content": options.task}]
    for _ in range(TURNS):
        try:
            blocks, stop = call(options.model, messages)
        except Failed as error:
            say(f"agent: model call failed: {error}\n")
            return 1
        messages.append({"role": "assistant", "content": blocks})
        if stop != "tool_use":
            return 0
        results = []
        for block in blocks:
            if block["type"] == "tool_use":
                shown = block["input"].get("command") or block["input"].get("path", "")
                say(f"  > {block['name']} {shown}\n")
                text, failed = use(block["name"], block["input"])
                results.append({"type": "tool_result", "tool_use_id": block["id"], "content": text, "is_error": failed})
        messages.append({"role": "user", "content": results})
    say(f"agent: no end after {TURNS} turns\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
