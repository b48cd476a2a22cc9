"""The versions that the proxy starts with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from secondtake.proxy import versions

GOOD = {"h2": "4.4.1", "mitmproxy": "12.3.1", "tornado": "6.5.2"}


def test_the_versions_installed_here_are_good() -> None:
    """C-01: what the lock brings starts."""
    versions.require()


@pytest.mark.parametrize(
    ("name", "version"),
    [("h2", "4.4.0"), ("h2", "4.4.1rc1"), ("h2", "nonsense"), ("mitmproxy", "12.2.2"), ("tornado", "6.5.1"), ("tornado", "6")],
)
def test_an_older_version_is_refused_with_its_name_and_a_command(name: str, version: str) -> None:
    """C-01: start-up refuses older."""
    with pytest.raises(versions.TooOld, match=re.escape(f"{name} {version} is older")) as refused:
        versions.require((GOOD | {name: version}).__getitem__)
    assert refused.value.hint is not None
    assert f"'{name}>=" in refused.value.hint


def test_a_mitmproxy_whose_layers_are_unknown_is_refused() -> None:
    """What is subclassed may have moved; a clear word beats a traceback in the middle of a recording."""
    with pytest.raises(versions.TooOld, match="newer than secondtake knows"):
        versions.require((GOOD | {"mitmproxy": "12.4.0"}).__getitem__)


@pytest.mark.parametrize("version", ["6.5.2", "6.5.2.post1", "6.6a1", "7.0", "1!6.5.2"])
def test_a_newer_version_starts(version: str) -> None:
    """Only what is known to be bad is refused."""
    versions.require((GOOD | {"tornado": version}).__getitem__)


def test_the_lock_is_within_the_bounds() -> None:
    """C-01: the pinned versions are at least the safe ones."""
    lock = (Path(__file__).parent.parent.parent / "requirements.lock").read_text()
    pinned = dict(re.findall(r"^([a-z0-9-]+)==([^ ;]+)", lock, re.MULTILINE))
    versions.require(pinned.__getitem__)
