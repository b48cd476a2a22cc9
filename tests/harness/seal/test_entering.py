"""From the order to the agent: what is refused is named by its step. The way itself: test_sealing.py."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path

import pytest

from secondtake.harness.seal import entering


def test_a_refused_step_is_named_with_its_reason_and_its_file() -> None:
    """D-01: what a person can act on."""

    def refused() -> None:
        raise PermissionError(1, "Operation not permitted", "/proc/self/uid_map")

    with pytest.raises(entering.Refused, match=r"^user namespace: Operation not permitted \(/proc/self/uid_map\)$"):
        entering._step("user namespace", refused)
    assert entering._step("x", lambda: 3) == 3


def test_the_end_of_the_gateway_is_the_end_of_the_start(tmp_path: Path) -> None:
    """D-05: an agent is not started for somebody who is gone. In a folder with a long name, too."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    held = os.open(folder, os.O_PATH)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as gateway:
        gateway.bind(f"/proc/self/fd/{held}/s")
        gateway.listen()
        asked: list[dict[str, object]] = []

        def serve() -> None:
            given, _ = gateway.accept()
            with given:
                asked.append(json.loads(given.recv(4096)))
                given.send(b'{"port": 1}')
                given.recv(4096)

        thread = threading.Thread(target=serve)
        thread.start()
        control = entering.Control(str(folder / "s"))
        assert control.ask({"tier": "sealed"}) == {"port": 1}
        with pytest.raises(SystemExit) as ended:
            control.ask({"roles": []})
        thread.join()
        control.socket.close()
    os.close(held)
    assert asked == [{"tier": "sealed"}]
    assert ended.value.code == 97
