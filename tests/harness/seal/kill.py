"""One sealed agent with children, for the tests that kill it: prints the tier, runs, prints the status. A script: `FOLDER PORT`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from secondtake.harness.launch import launch
from secondtake.harness.seal import Wanted, sealed

AGENT = "sleep 300 & (setsid sleep 300 &); trap '' TERM; echo agent; exec sleep 300"


async def main(folder: Path, port: int) -> None:
    """Until it is over, or we are."""
    async with sealed(
        run_dir=folder, proxy_port=port, credential=None, wanted=Wanted.REQUIRE, cwd=folder, now_us=lambda: 0, readable=(folder,)
    ) as seal:
        sys.stdout.write(f"{seal.tier}\n")
        sys.stdout.flush()
        finished = await launch((*seal.prefix, "/bin/sh", "-c", AGENT), env=dict(os.environ), grace_s=0.1)
    sys.stdout.write(f"status {finished.status}\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
