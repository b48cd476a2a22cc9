"""A package index on loopback with one small wheel, for what an agent installs from its shell."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOST = "index.example"
"""What the agent's tool calls name; the recording is told where it is."""

_INFO = "pebble-1.0.dist-info"
_FILES = {
    "pebble/__init__.py": "WEIGHT = 3\n",
    f"{_INFO}/METADATA": "Metadata-Version: 2.1\nName: pebble\nVersion: 1.0\n",
    f"{_INFO}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}


def _wheel() -> bytes:
    listed = "".join(f"{name},,\n" for name in (*_FILES, f"{_INFO}/RECORD"))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, text in {**_FILES, f"{_INFO}/RECORD": listed}.items():
            file.writestr(zipfile.ZipInfo(name), text)
    return made.getvalue()


WHEEL = _wheel()
_NAME = "pebble-1.0-py3-none-any.whl"
_PAGE = f'<!DOCTYPE html><html><body><a href="/files/{_NAME}#sha256={hashlib.sha256(WHEEL).hexdigest()}">{_NAME}</a></body></html>'.encode()
_ANSWERS = {"/simple/pebble/": ("text/html", _PAGE), f"/files/{_NAME}": ("application/octet-stream", WHEEL)}


class _Index(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the stdlib's signature
        """Say nothing."""

    def do_GET(self) -> None:
        kind, body = _ANSWERS.get(self.path, ("text/plain", b"not here\n"))
        self.send_response(200 if self.path in _ANSWERS else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def served() -> Iterator[str]:
    """Where the index is, until the block ends."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Index) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
