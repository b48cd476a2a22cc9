"""One sealed agent, for the tests that kill or interrupt it. A script: `FOLDER GRACE_S PROGRAM ARGUMENT…`; prints tier and end.

With DISCARD in the environment, what it writes goes to a layer.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

from secondtake.harness.launch import launch
from secondtake.harness.seal import Wanted, sealed


async def main(folder: Path, grace_s: float, command: list[str]) -> None:
    """Until it is over, or we are."""
    port = 9  # nobody is there: the agents of these tests speak to nobody
    async with sealed(
        run_dir=folder, proxy_port=port, credential=None, wanted=Wanted.REQUIRE, cwd=folder, now_us=lambda: 0, readable=(folder,),
        discard="DISCARD" in os.environ,
    ) as seal:  # fmt: skip
        sys.stdout.write(f"{seal.tier}\n")
        sys.stdout.flush()
        finished = await launch((*seal.prefix, *command), env=dict(os.environ), grace_s=grace_s)
    sys.stdout.write(f"driver {finished.status} {finished.interrupted}\n")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]))
