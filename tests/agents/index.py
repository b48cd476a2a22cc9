"""A package index on loopback for what an agent installs from its shell: one small wheel for pip, one small tarball for npm."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HOST = "index.example"
"""What the agent's tool calls name; the recording is told where it is."""

_INFO = "pebble-1.0.dist-info"
_WHEEL_FILES = {
    "pebble/__init__.py": "WEIGHT = 3\n",
    f"{_INFO}/METADATA": "Metadata-Version: 2.1\nName: pebble\nVersion: 1.0\n",
    f"{_INFO}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}


def _wheel() -> bytes:
    listed = "".join(f"{name},,\n" for name in (*_WHEEL_FILES, f"{_INFO}/RECORD"))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for name, text in {**_WHEEL_FILES, f"{_INFO}/RECORD": listed}.items():
            file.writestr(zipfile.ZipInfo(name), text)
    return made.getvalue()


_MANIFEST = {"name": "pebble", "version": "1.0.0", "main": "index.js"}


def _tarball() -> bytes:
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb", mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as file:
        for name, text in {"package.json": json.dumps(_MANIFEST), "index.js": "exports.weight = 3;\n"}.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text)
            file.addfile(entry, io.BytesIO(text.encode()))
    return made.getvalue()


WHEEL, TARBALL = _wheel(), _tarball()
_WHEEL_PATH, _TARBALL_PATH = "/files/pebble-1.0-py3-none-any.whl", "/pebble/-/pebble-1.0.0.tgz"
_PAGE = f'<a href="{_WHEEL_PATH}#sha256={hashlib.sha256(WHEEL).hexdigest()}">{_WHEEL_PATH.rpartition("/")[2]}</a>'
_DIST = {
    "tarball": f"https://{HOST}{_TARBALL_PATH}",
    "integrity": f"sha512-{base64.b64encode(hashlib.sha512(TARBALL).digest()).decode()}",
}
_PACKUMENT = {"name": "pebble", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {**_MANIFEST, "dist": _DIST}}}
_ANSWERS = {
    "/simple/pebble/": ("text/html", f"<!DOCTYPE html><html><body>{_PAGE}</body></html>".encode()),
    _WHEEL_PATH: ("application/octet-stream", WHEEL),
    "/pebble": ("application/json", json.dumps(_PACKUMENT).encode()),
    _TARBALL_PATH: ("application/octet-stream", TARBALL),
    "/-/npm/v1/security/advisories/bulk": ("application/json", b"{}"),
}


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

    def do_POST(self) -> None:
        """npm asks for advisories."""
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.do_GET()


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
