"""System calls by number. What they do is tested where it is used; here, that errors are told and descriptors close."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from secondtake.harness.seal import kernel


def test_a_refused_call_is_an_os_error() -> None:
    """With the kernel's reason."""
    with pytest.raises(OSError, match=r"Invalid argument|not permitted"):
        kernel.unshare(1)
    with pytest.raises(OSError, match="No such file"):
        kernel.mount("none", "/nonexistent/place", "tmpfs", 0)
    with pytest.raises(OSError, match="Bad file"):
        kernel.setns(9999, kernel.CLONE_NEWNET)


SIGNALLED = """
import os, signal
from secondtake.harness.seal import kernel
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
descriptor = kernel.signal_descriptor({signal.SIGUSR2})
os.kill(os.getpid(), signal.SIGUSR2)
said = os.read(descriptor, 128)
print(int.from_bytes(said[:4], "little") == signal.SIGUSR2, int.from_bytes(said[12:16], "little") == os.getpid())
"""


def test_a_signal_descriptor_says_who_sent() -> None:
    """signalfd(2): number and sender. In a process of its own: here another thread might take the signal."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run([sys.executable, "-c", SIGNALLED], env=environ, capture_output=True, text=True, check=True)
    assert ran.stdout == "True True\n"


def test_every_descriptor_from_one_on_is_closed() -> None:
    """D-07, in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writing, 3)
        kernel.close_from(4)
        left = os.listdir("/proc/self/fd")  # noqa: PTH208 - with one descriptor for it
        os.write(3, ",".join(sorted(set(left) - {"0", "1", "2"})).encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"3,4"  # and the listing's own
    os.close(reading)


def test_the_landlock_version_is_a_number() -> None:
    """0 where the kernel has none."""
    assert kernel.landlock_version() >= 0
