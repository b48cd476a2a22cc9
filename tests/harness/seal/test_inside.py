"""The script before the agent, by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from secondtake.harness.seal import inside

SCRIPT = [sys.executable, "-I", "-S", inside.__file__]


def test_without_a_gateway_nothing_is_run(tmp_path: Path) -> None:
    """A status of its own, and the reason."""
    done = subprocess.run([*SCRIPT, str(tmp_path / "none"), "sealed", "/bin/echo", "ran"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (inside.NOT_SEALED, "")
    assert done.stderr == "secondtake: not sealed: no gateway: No such file or directory\n"


def test_it_loads_the_standard_library_and_the_modules_beside_it_only(tmp_path: Path) -> None:
    """D-05: no package; and a start that is not felt."""
    code = f"""
import runpy, sys
sys.argv = ["inside.py", {str(tmp_path / "none")!r}, "sealed"]
try:
    runpy.run_path({inside.__file__!r}, run_name="__main__")
except SystemExit:
    pass
print(*sorted(name for name in sys.modules if name.startswith("secondtake")))
print("asyncio" in sys.modules, "pathlib" in sys.modules, "subprocess" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    ours = "bpf checks confinement entering inside kernel layer mounts network processes"
    packages = ["secondtake", "secondtake.harness", "secondtake.harness.seal"]
    assert done.stdout.splitlines() == [
        " ".join([*packages, *(f"secondtake.harness.seal.{name}" for name in ours.split())]), "False False False",
    ]  # fmt: skip
