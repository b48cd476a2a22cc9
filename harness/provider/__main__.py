"""`python -m secondtake.harness.provider SCRIPT.toml`: the scripted provider on its own, until interrupted.

Prints one JSON line (`ready`, `base_url`, `pid`, and over TLS `ca`) as soon as it accepts connections.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path

from secondtake.cassettes.errors import BadInput
from secondtake.harness.provider import Provider, make_identity, read_script, real_pace


def main(argv: Sequence[str]) -> int:
    """0 after an interrupt, 64 for a script or an option that cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m secondtake.harness.provider", description="A provider that follows a script.")
    parser.add_argument("script", type=Path, help="TOML file")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--cert", type=Path, help="PEM chain; turns on TLS")
    parser.add_argument("--key", type=Path, help="PEM private key of --cert")
    parser.add_argument("--make-ca", type=Path, metavar="FILE", help="turn on TLS with a fresh certificate, and write its CA here")
    parser.add_argument("--name", action="append", default=[], help="a further host name in the fresh certificate")
    options = parser.parse_args(argv)
    try:
        script = read_script(options.script.read_text(encoding="utf-8"))
        tls = _tls(options)
    except (BadInput, OSError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 64
    try:
        return asyncio.run(_serve(Provider(script, tls, real_pace, host=options.host, port=options.port), options.make_ca))
    except OSError as error:
        sys.stderr.write(f"error: cannot listen on {options.host}:{options.port}: {error.strerror}\n")
        return 64


def _tls(options: argparse.Namespace) -> ssl.SSLContext | None:
    if options.make_ca:
        identity = make_identity(["127.0.0.1", "::1", "localhost", *options.name])
        options.make_ca.write_bytes(identity.ca_pem)
        return identity.context
    if not options.cert:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    context.load_cert_chain(options.cert, options.key)
    return context


async def _serve(provider: Provider, ca: Path | None) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with provider:
        ready = {"ready": True, "base_url": provider.base_url, "pid": os.getpid()}
        sys.stdout.write(json.dumps(ready | ({"ca": str(ca)} if ca else {})) + "\n")
        sys.stdout.flush()
        await stop.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
