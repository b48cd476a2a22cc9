"""Room for many connections, and none of it for the agent."""

from __future__ import annotations

import asyncio
import os
import resource
import sys

from secondtake.harness.descriptors import room
from secondtake.harness.launch import Stdin, launch


def test_the_limit_is_raised_for_us_and_put_back() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with room() as former:
            assert former == 256
            assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 256
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (256, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_agent_keeps_the_limit_it_was_given() -> None:
    """An agent that sees another limit than without us could do other things."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, hard))
    reading, writing = os.pipe()
    try:
        with room() as former:
            program = "import resource; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
            done = asyncio.run(
                launch([sys.executable, "-c", program], env=dict(os.environ), stdin=Stdin.CLOSED, stdout=writing, descriptors=former)
            )
        os.close(writing)
        assert done.status == 0
        assert os.read(reading, 100).strip() == b"300"
    finally:
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
