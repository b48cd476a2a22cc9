"""Make the strongest seal that this machine allows, and take it away afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence, Set
from contextlib import asynccontextmanager
from pathlib import Path

from secondtake.harness.seal.values import Bind, Seal, SealBroken, Tier, Wanted


@asynccontextmanager
async def sealed(
    *,
    run_dir: Path,
    proxy_port: int,
    credential: str | None,
    wanted: Wanted,
    binds: Sequence[Bind] = (),
    cwd: Path,
    readable: Sequence[Path] = (),
    now_us: Callable[[], int],
    known_hosts: Set[str] | None = None,
) -> AsyncIterator[Seal]:
    """Give a seal around the proxy at `proxy_port`.

    Raises:
        SealBroken: `wanted` is REQUIRE and nothing seals, or a seal that was made does not hold.
    """
    if wanted is Wanted.REQUIRE:
        raise SealBroken("no seal can be made here", hint="--seal auto takes the strongest there is, --seal off none")
    yield Seal(Tier.COOPERATIVE, port=proxy_port, holes=("nothing is proven: only variables point at the proxy",))
