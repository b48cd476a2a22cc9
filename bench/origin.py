"""A tiny origin over TLS and HTTP/1.1, as a process of its own: `python -m bench.origin FOLDER`.

Writes its certificate to FOLDER/origin-ca.pem and prints its port.

* `/item/N`: 1 KB of JSON; `/large/N`: 32 KB of the same.
* `/events/COUNT/GAP_MS`: server-sent events; the data of each is the monotonic clock, in nanoseconds, when it was sent.
* `/bytes/SIZE`: SIZE bytes that do not compress.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
import ipaddress
import random
import ssl
import sys
import time
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

BLOCK = random.Random(1).randbytes(256 * 1024)
HEAD = b"HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nServer: origin\r\n"


def certificate(folder: Path) -> tuple[Path, Path]:
    """Write a self-signed certificate for 127.0.0.1 and localhost; return it and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bench origin")])
    start = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), start, start + datetime.timedelta(days=30))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, secret = folder / "origin-ca.pem", folder / "origin-key.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    return pem, secret


def item(number: int, size_bytes: int) -> bytes:
    """About so many bytes of JSON, different for each number."""
    return b'{"item":%d,"text":"%s"}' % (number, BLOCK[number : number + size_bytes // 2 - 16].hex().encode())


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer requests on one connection until the client leaves."""
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode().split("/")
            match path:
                case ["", "item" | "large" as kind, number]:
                    body = item(int(number), 1024 if kind == "item" else 32 * 1024)
                    writer.write(HEAD + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
                case ["", "events", count, gap_ms]:
                    writer.write(HEAD + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
                    for _ in range(int(count)):
                        await asyncio.sleep(int(gap_ms) / 1000)
                        event = b"data: %d\n\n" % time.monotonic_ns()
                        writer.write(b"%x\r\n%s\r\n" % (len(event), event))
                    writer.write(b"0\r\n\r\n")
                case ["", "bytes", size]:
                    left = int(size)
                    writer.write(HEAD + b"Content-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n" % left)
                    while left:
                        writer.write(BLOCK[:left])
                        left -= min(left, len(BLOCK))
                        await writer.drain()
                case _:
                    writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
        pass
    finally:
        writer.close()


async def main(folder: Path) -> None:
    """Serve on a free loopback port until killed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(folder))
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(Path(sys.argv[1])))
