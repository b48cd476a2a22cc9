"""What `doctor` finds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secondtake.harness.examination import examined
from secondtake.proxy.handshakes import Verdict
from tests.harness.stages import stage_in


@pytest.mark.loopback
def test_tools_that_are_not_there_are_absent_and_nothing_is_left_behind(tmp_path: Path) -> None:
    """DESIGN 7: one handshake per tool; on a machine without any, each is named all the same."""
    found = examined(stage_in(tmp_path, PATH=str(tmp_path), NODE_TLS_REJECT_UNAUTHORIZED="0"))
    assert {result.verdict for result in found.results} == {Verdict.ABSENT}
    assert any("NODE_TLS_REJECT_UNAUTHORIZED" in note for note in found.notes)
    assert not list((tmp_path / "store").rglob("*.pem"))
    assert os.listdir(tmp_path) == ["store"]  # noqa: PTH208  # names, not paths
