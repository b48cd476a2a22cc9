"""What a confined process can no longer do; in processes of their own, since there is no way back."""

from __future__ import annotations

import json
import subprocess
import sys

from secondtake.harness.seal.confinement import socket_filter
from tests.harness.seal.scenes import ROOT

TRIES = """
import json, os, socket, sys
from secondtake.harness.seal.confinement import confine
confine()
said = {}
families = {"unix": 1, "inet": 2, "inet6": 10, "netlink": 16, "packet": 17, "can": 29, "bluetooth": 31, "vsock": 40}
for name, family in families.items():
    try:
        socket.socket(family, socket.SOCK_RAW if family in (16, 17, 29, 31) else socket.SOCK_STREAM).close()
        said[name] = "made"
    except OSError as error:
        said[name] = error.errno
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
said["io_uring"] = [libc.syscall(425, 1, ctypes.create_string_buffer(120)), ctypes.get_errno()]
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
said |= {name: status[name].strip() for name in ("CapEff", "CapBnd", "CapInh", "NoNewPrivs", "Seccomp")}
print(json.dumps(said))
"""


def test_socket_families_but_a_few_are_unknown_and_capabilities_are_gone() -> None:
    """D2: vsock reaches the host, io_uring would go past the filter. Root keeps power over files and users only."""
    done = subprocess.run([sys.executable, "-c", TRIES], env={"PYTHONPATH": str(ROOT / ".src")}, capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert {said[name] for name in ("unix", "inet", "netlink")} == {"made"}
    assert {said[name] for name in ("packet", "can", "bluetooth", "vsock")} == {97}
    assert said["io_uring"] == [-1, 1]
    assert (said["NoNewPrivs"], said["Seccomp"]) == ("1", "2")
    for name in ("CapEff", "CapInh"):
        assert int(said[name], 16) & (1 << 12 | 1 << 13 | 1 << 21 | 1 << 19) == 0, name  # net_admin, net_raw, sys_admin, sys_ptrace


def test_an_unknown_machine_gets_no_filter() -> None:
    """A filter with wrong numbers would refuse what is harmless."""
    assert socket_filter("vax") is None
    assert len(socket_filter("aarch64") or b"") < len(socket_filter("x86_64") or b"")
