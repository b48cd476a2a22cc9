"""The image of the Dockerfile."""

from __future__ import annotations

import json

from tests.image.engine import Engine, ok


def test_the_image_tells_the_whole_story_without_a_network(podman: Engine) -> None:
    """Issue 5, item 5: the image runs `demo`."""
    told = ok(podman.podman("run", "--rm", "--network=none", podman.image, "demo", "--json"))
    lines = [json.loads(line) for line in told.splitlines()]
    assert lines[-1]["exit_code"] == 0, told


def test_the_program_runs_as_nobody_in_particular_and_keeps_its_store_to_itself(podman: Engine) -> None:
    """SECURITY C-06: the store is 0700; what is read from the image cannot be written by the program."""
    look = "id -u; stat -c '%a %U' /store; test -w /opt/secondtake || echo read-only; command -v pip || echo no pip; ls -A /store"
    shell = ("run", "--rm", "--network=none", "--entrypoint", "sh", podman.image, "-c", look)
    assert ok(podman.podman(*shell)).splitlines() == ["10001", "700 secondtake", "read-only", "no pip"]
