"""`verify`: is a cassette still what was recorded?"""

from __future__ import annotations

import json

import pytest

from secondtake.cassettes.store import Store
from tests.cli.scenes import Command


def test_the_root_noted_down_elsewhere_is_checked(command: Command, store: Store) -> None:
    """B-06: `verify --root HEX` fails for any other cassette."""
    with store.open("incident") as cassette:
        assert cassette.root is not None
        assert command("verify", "incident", "--root", cassette.root).code == 0
    other = command("verify", "incident", "--root", "00" * 32, "--json")
    said = json.loads(other.out)
    assert (other.code, said["clean"]) == (104, False)
    assert "root_differs" in {fault["id"] for fault in said["faults"]}


@pytest.mark.parametrize("part", [("--subset", "1/2"), ("--subset", "2/2"), ("--quick",)])
def test_part_of_the_bytes_can_be_read(command: Command, store: Store, part: tuple[str, ...]) -> None:
    """B-04."""
    assert command("verify", "incident", *part).code == 0


@pytest.mark.parametrize("part", ["0/2", "3/2", "1", "a/b", "1/0"])
def test_a_part_that_is_none_is_refused(command: Command, store: Store, part: str) -> None:
    """Usage."""
    assert command("verify", "incident", "--subset", part).code == 64
