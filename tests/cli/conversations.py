"""An agent of a few lines that talks to a model three times, and the model: for tests of what differs between two runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.cli.scenes import python

ADDRESS = "https://api.provider.example/v1/messages"


class Model(BaseHTTPRequestHandler):
    """Says which turn it is, in the shape of Anthropic Messages; anything else gets its path."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer a model call."""
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = f"turn {len(asked['messages'])}" if "messages" in asked else "noted"
        said = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked.get("model"), "stop_reason": "end_turn"}
        self._say({**said, "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 1, "output_tokens": 1}})

    def _say(self, answer: object) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def model() -> Iterator[tuple[str, str]]:
    """The model on loopback; gives the option that leads to it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield ("--route", f"api.provider.example=http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


TALKS = """
import json, sys, time, uuid, urllib.error, urllib.request as r
def post(path, body):
    head = {"x-api-key": "k", "content-type": "application/json"}
    asked = r.Request("https://api.provider.example" + path, headers=head, data=json.dumps(body).encode())
    return json.load(r.urlopen(asked, timeout=20))
tasks, messages = sys.argv[1:], []
for task in tasks:
    messages.append({"role": "user", "content": task.replace("NONCE", uuid.uuid4().hex).replace("NOW", repr(time.time()))})
    said = post("/v1/messages", {"model": "hasty-20260101", "max_tokens": 64, "messages": messages, **EXTRA})
    print(said["content"][0]["text"])
    messages.append({"role": "assistant", "content": said["content"][0]["text"]})
"""
"""Each argument is a turn of the user; NONCE and NOW in it are another value each time. EXTRA is an expression."""


def talks(*tasks: str, extra: str = "{}") -> tuple[str, ...]:
    """The agent's command line."""
    return python(TALKS.replace("EXTRA", extra), *tasks)
