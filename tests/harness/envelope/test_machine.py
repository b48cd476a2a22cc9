"""The machine as an agent finds it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from secondtake.cassettes.envelope import FIELDS, UNKNOWN, Layer
from secondtake.harness.envelope.machine import Machine, limits, locale, timeouts

OF_FILES = {"programs", "locks", "home"}


def laid_out(root: Path, **files: str) -> Machine:
    """A machine of these files; `/` is written `__`."""
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Machine(root)


def test_it_says_every_field_of_the_environment_that_is_not_of_files() -> None:
    """Issue 5: every layer has its fields."""
    assert set(Machine().environment({})) == {each.name for each in FIELDS[Layer.ENVIRONMENT]} - OF_FILES


def test_an_empty_machine_is_unknown_and_no_error(tmp_path: Path) -> None:
    """Issue 5: what cannot be known is `unknown`."""
    said = Machine(tmp_path).environment({})
    assert (said["distribution"], said["container"], said["umask"]) == (UNKNOWN, UNKNOWN, UNKNOWN)
    assert said["time_zone"] == "UTC"


@pytest.mark.parametrize(
    ("files", "environ", "expected"),
    [
        ({"run__.containerenv": 'engine="podman"\nimage="a.example/b:1"\nimageid="abc"\n'}, {}, {"kind": "podman", "image": "abc"}),
        ({"run__.containerenv": ""}, {}, {"kind": "podman", "image": UNKNOWN}),
        ({".dockerenv": ""}, {}, {"kind": "docker", "image": UNKNOWN}),
        ({"proc__1__cgroup": "0::/system.slice/docker-abc.scope\n"}, {}, {"kind": "docker", "image": UNKNOWN}),
        ({}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {"kind": "kubernetes", "image": UNKNOWN}),
        ({"proc__1__cgroup": "0::/init.scope\n"}, {}, None),
    ],
)
def test_a_container_is_told_by_what_its_engine_leaves(
    tmp_path: Path, files: dict[str, str], environ: dict[str, str], expected: object
) -> None:
    """Issue 5: image id where in a container."""
    assert laid_out(tmp_path, **files).container(environ) == expected


def test_the_distribution_is_that_of_os_release(tmp_path: Path) -> None:
    """os-release(5): quoted, and in either place."""
    assert laid_out(tmp_path, usr__lib__os__release="x").distribution() == UNKNOWN
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "os-release").write_text('NAME="D"\nPRETTY_NAME="D 12 (x)"\n')
    assert Machine(tmp_path).distribution() == "D 12 (x)"


def test_the_time_zone_is_the_variable_then_the_link_then_the_content(tmp_path: Path) -> None:
    """Issue 5: time zone."""
    machine = laid_out(tmp_path, etc__localtime="TZif")
    assert str(machine.time_zone({})).startswith("sha256:")
    (tmp_path / "etc" / "localtime").unlink()
    (tmp_path / "etc" / "localtime").symlink_to("/usr/share/zoneinfo/Europe/Vienna")
    assert machine.time_zone({}) == "Europe/Vienna"
    assert machine.time_zone({"TZ": "Asia/Tokyo"}) == "Asia/Tokyo"
    assert machine.time_zone({"TZ": ""}) == "UTC"


def test_the_umask_is_the_kernels_word() -> None:
    """Issue 5: umask; asking must not change it."""
    before = os.umask(0o027)
    try:
        assert Machine().umask() == "0027"
    finally:
        os.umask(before)


def test_the_limit_of_open_files_is_the_agents_not_ours() -> None:
    """The proxy raises its own limit; the agent keeps the one it was given."""
    assert limits(1024)["open_files"] == 1024
    assert isinstance(limits(None)["open_files"], int | None)


def test_a_memory_limit_is_that_of_the_control_group(tmp_path: Path) -> None:
    """Issue 5: resource limits that matter."""
    machine = laid_out(tmp_path, sys__fs__cgroup__memory="x")
    assert machine.memory() is None
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("max\n")
    assert machine.memory() is None
    (tmp_path / "sys/fs/cgroup/memory.max").write_text("1048576\n")
    assert machine.memory() == 1048576


def test_locale_and_timeouts_are_those_variables_and_no_others() -> None:
    """No value of another variable is kept: it may be a credential."""
    environ = {"LANG": "de_AT.UTF-8", "LC_ALL": "C", "SECRET": "x", "BASH_MAX_TIMEOUT_MS": "9000"}
    assert locale(environ) == {"LANG": "de_AT.UTF-8", "LC_ALL": "C"}
    assert timeouts(environ) == {"BASH_MAX_TIMEOUT_MS": "9000"}
