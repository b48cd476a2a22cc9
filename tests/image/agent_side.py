"""Run in the agent's container: what can be reached from there, as JSON. Arguments: TCP targets `HOST:PORT`, `--`, names."""

import errno
import json
import os
import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path

split = sys.argv.index("--")
targets, names = sys.argv[1:split], sys.argv[split + 1 :]


def tcp(target: str) -> str:
    host, _, port = target.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=2):
            return "reached"
    except TimeoutError:
        return "no answer"
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error))


def udp(host: str) -> str:
    """A question to a name server."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.settimeout(2)
        try:
            sender.sendto(b"\1\1\1\0\0\1\0\0\0\0\0\0\1a\7example\0\0\1\0\1", (host, 53))
            sender.recv(512)
        except TimeoutError:
            return "no answer"
        except OSError as error:
            return errno.errorcode.get(error.errno or 0, str(error))
        return "answered"


def name(asked: str) -> str:
    try:
        return str(socket.getaddrinfo(asked, 80)[0][4][0])
    except OSError:
        return "unknown"


def web(url: str) -> str:
    try:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        return f"status {error.code}"
    except OSError as error:
        return f"{error}"


print(
    json.dumps(
        {
            "tcp": {target: tcp(target) for target in targets},
            "udp": {target.rpartition(":")[0]: udp(target.rpartition(":")[0]) for target in targets if "[" not in target},
            "names": {asked: name(asked) for asked in names},
            "web": {url: web(url) for url in os.environ["URLS"].split()},
            "shared": sorted(each.name for each in Path("/shared").iterdir()),
            "writable": os.access("/shared", os.W_OK),
            "store": Path("/store").exists(),
        }
    )
)
