"""The words before a sealed agent's command: `python -I -S inside.py CONTROL TIER [--] PROGRAM [ARGUMENT…]`.

A script of its own. CONTROL is the path of a Unix socket of the gateway, from which it gets its order and to which it hands the sockets
that are used outside. Without a program it makes the seal, tests it and ends: a trial. Ends with the shell's 126 or 127 where the
program cannot be executed, and with `NOT_SEALED` where no such seal can be made here; nothing is run then.
"""

from __future__ import annotations

import os
import sys

NOT_SEALED = 97
"""Exit status: no seal of this tier can be made here, or the one that was made does not hold."""


def _own_modules() -> None:
    """Make the modules beside this file importable by their full names, without their packages, which would load much more."""
    folder = os.path.dirname(os.path.abspath(__file__))
    for name in ("secondtake", "secondtake.harness", "secondtake.harness.seal"):
        package = type(sys)(name)
        package.__path__ = [folder] if name.endswith(".seal") else []
        sys.modules[name] = package


if __name__ == "__main__":
    _own_modules()
    from secondtake.harness.seal.entering import main

    sys.exit(main(sys.argv[1:]))
