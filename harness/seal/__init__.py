"""The seal: an agent that can reach the proxy and nothing else, in the strongest tier that this machine allows."""

from __future__ import annotations

from secondtake.harness.seal.sealing import sealed
from secondtake.harness.seal.values import Attempt, Bind, Seal, SealBroken, Tier, Wanted

__all__ = ["Attempt", "Bind", "Seal", "SealBroken", "Tier", "Wanted", "sealed"]
