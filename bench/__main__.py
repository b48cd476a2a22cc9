"""Run the bench: `uv run python -m bench [--quick] [--only ROW] [--json FILE] [--keep DIR]`. The table goes to standard output."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

from bench import rows

FULL = rows.Effort(rounds=5, requests=4000, connects=300, body_mb=500, opened=5000, turns=100, events=200, repeats=7)
QUICK = rows.Effort(rounds=1, requests=400, connects=40, body_mb=50, opened=300, turns=20, events=40, repeats=2)
ROWS = {"kept": rows.kept, "replay": rows.replay, "record": rows.record, "large": rows.large, "opening": rows.opening}


def main() -> int:
    """Measure, print, and return 1 when a row could not be measured."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="What secondtake costs, side by side with mitmdump.")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes; the ratios are rough")
    parser.add_argument("--only", choices=ROWS, action="append", help="measure these only")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    asked = parser.parse_args()
    found: list[rows.Row] = []
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        bench = rows.Bench(Path(folder), QUICK if asked.quick else FULL)
        with bench.set_up():
            for name in asked.only or ROWS:
                try:
                    for row in ROWS[name](bench):
                        print(f"{row.what}: {row.ratio:.2f}×", file=sys.stderr, flush=True)
                        found.append(row)
                except Exception:  # noqa: BLE001  # one row that cannot be measured must not hide the others
                    traceback.print_exc()
                    failed.append(name)
    print(table(found))
    for name in failed:
        print(f"\nNot measured: {name}")
    if asked.json:
        asked.json.write_text(json.dumps({"machine": machine(), "rows": [dataclasses.asdict(row) for row in found]}, indent=1) + "\n")
    return 1 if failed else 0


def machine() -> dict[str, object]:
    """The kind of machine, and the versions that matter; nothing that names one."""
    versions = {name: importlib.metadata.version(name) for name in ("mitmproxy", "h2", "zstandard")}
    return {"cores": os.cpu_count(), "python": sys.version.split()[0], **versions}


def table(found: list[rows.Row]) -> str:
    """The rows as Markdown."""
    said = ", ".join(f"{name} {value}" for name, value in machine().items())
    lines = [f"Measured with {said}.", "", "| what | ours | reference | ratio | goal | met | spread |", "|---|---|---|---|---|---|---|"]
    for row in found:
        ours, reference = f"{row.ours:.4g} {row.unit}", f"{row.reference:.4g} {row.unit} ({row.against})"
        lines.append(f"| {row.what} | {ours} | {reference} | {row.ratio:.2f}× | {row.goal} | {'yes' if row.met else 'no'} | {row.note} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
