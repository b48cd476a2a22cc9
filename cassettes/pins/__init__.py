"""What an ID of a model promises: its class, the reason, dated candidates, its retirement (PROVIDERS A4).

The rules are data (`*.toml` beside this file), each with a version and its sources.
"""

from __future__ import annotations

from secondtake.cassettes.pins.explain import Pin, explain, looks_like, provider_of
from secondtake.cassettes.pins.tables import PROVIDERS, PinClass, Table, table, versions

__all__ = ["PROVIDERS", "Pin", "PinClass", "Table", "explain", "looks_like", "provider_of", "table", "versions"]
