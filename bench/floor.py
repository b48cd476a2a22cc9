"""What no proxy in Python can go below on this machine: `python -m bench.floor FOLDER`.

Accepts CONNECT, then TLS, and answers every request with the same kilobyte, unread and unmatched: one read, one write and OpenSSL per
request, one thread per connection. FOLDER holds the origin's certificate. Prints its port.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import sys
import threading
from pathlib import Path

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1024\r\n\r\n" + b"x" * 1024


def serve(raw: socket.socket, context: ssl.SSLContext) -> None:
    """Answer on one connection until the client leaves."""
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with contextlib.suppress(OSError), raw:
        raw.recv(4096)
        raw.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        with context.wrap_socket(raw, server_side=True) as connection:
            while connection.recv(4096):
                connection.sendall(ANSWER)


def main(folder: Path) -> None:
    """Serve on a free loopback port until killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "origin-ca.pem", folder / "origin-key.pem")
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        while True:
            threading.Thread(target=serve, args=(server.accept()[0], context), daemon=True).start()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(Path(sys.argv[1]))
