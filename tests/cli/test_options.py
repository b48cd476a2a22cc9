"""Shared options: the store's place, the agent's part of the line, HOST=VALUE."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from secondtake.cli.exits import Unusable
from secondtake.cli.options import Place, Surface, keep_out_of_workspace, pairs, place_of, split_agent
from tests.cli.scenes import Command


@pytest.mark.parametrize(
    ("asked", "environ", "root"),
    [
        ("/asked", {"SECONDTAKE_STORE": "/named", "XDG_DATA_HOME": "/data", "HOME": "/home/x"}, "/asked"),
        (None, {"SECONDTAKE_STORE": "/named", "XDG_DATA_HOME": "/data", "HOME": "/home/x"}, "/named"),
        (None, {"XDG_DATA_HOME": "/data", "HOME": "/home/x"}, "/data/secondtake"),
        (None, {"HOME": "/home/x"}, "/home/x/.local/share/secondtake"),
        (None, {"SECONDTAKE_STORE": "", "XDG_DATA_HOME": "relative", "HOME": "/home/x"}, "/home/x/.local/share/secondtake"),
    ],
)
def test_the_store_is_where_the_nearest_says(asked: str | None, environ: dict[str, str], root: str) -> None:
    """DESIGN 7: --store, else SECONDTAKE_STORE, else the data folder. XDG: a relative path is to be ignored."""
    assert str(place_of(asked, environ).root) == root


def surface(root: Path, *, asked: bool = False, default: bool = False) -> Surface:
    """A surface whose store is at `root`."""
    return Surface(Place(root, asked=asked, default=default), json=False, quiet=False)


def test_a_store_beside_the_workspace_is_fine(tmp_path: Path) -> None:
    """`/work-store` is not inside `/work`."""
    keep_out_of_workspace(surface(tmp_path / "work-store"), tmp_path / "work")


def test_a_store_that_a_link_leads_into_the_workspace_is_refused(tmp_path: Path) -> None:
    """What counts is where the files are."""
    (tmp_path / "work" / "inside").mkdir(parents=True)
    (tmp_path / "outside").symlink_to(tmp_path / "work" / "inside")
    with pytest.raises(Unusable) as raised:
        keep_out_of_workspace(surface(tmp_path / "outside"), tmp_path / "work")
    assert "--store" in str(raised.value.hint)


def test_the_data_folder_of_a_home_that_is_the_workspace_is_fine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent started in one's home sees every program's data anyway; an XDG_DATA_HOME inside a project is refused."""
    monkeypatch.setenv("HOME", str(tmp_path))
    keep_out_of_workspace(surface(tmp_path / ".local/share/secondtake", default=True), tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with pytest.raises(Unusable):
        keep_out_of_workspace(surface(tmp_path / "work/data/secondtake", default=True), tmp_path / "work")


def test_a_store_asked_for_is_allowed_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The person said so."""
    keep_out_of_workspace(surface(tmp_path / "x", asked=True), tmp_path)
    assert capsys.readouterr().err.startswith("warning: the store")


@pytest.mark.parametrize(
    ("line", "ours", "agent"),
    [
        (["x", "--", "make"], ["x"], ("make",)),
        (["--", "sh", "-c", "a -- b"], [], ("sh", "-c", "a -- b")),
        (["x", "--", "a", "--", "--store", "b"], ["x"], ("a", "--", "--store", "b")),
        (["x"], ["x"], ()),
        (["x", "--"], ["x"], ()),
    ],
)
def test_everything_after_the_first_dashes_is_the_agents(line: list[str], ours: list[str], agent: tuple[str, ...]) -> None:
    """Also what looks like an option of ours."""
    assert split_agent(line) == (ours, agent)


def test_an_option_of_the_agent_is_not_ours(command: Command) -> None:
    """`--json` after the dashes does not turn an error into JSON."""
    assert command("record", "x", "--", "no-such-agent", "--json").out == ""
    assert command("record", "--help", "--", "x").code == 0


@pytest.mark.parametrize("value", ["host", "=x", "host=", " =x", ""])
def test_what_is_not_a_pair_is_refused(value: str) -> None:
    """One line that names the option."""
    with pytest.raises(click.BadParameter):
        pairs("--route", [value], "URL")


def test_a_host_is_read_as_the_wire_reads_it() -> None:
    """Case and a final dot do not matter; the value may hold `=`."""
    assert pairs("--route", ["Web.Example.=http://x/?a=b"], "URL") == {"web.example": "http://x/?a=b"}


def test_the_store_may_be_named_before_the_command(command: Command, tmp_path: Path) -> None:
    """`secondtake --store DIR ls` and `secondtake ls --store DIR` are one."""
    before = command("--store", str(tmp_path / "a"), "ls")
    assert before.err == command("ls", "--store", str(tmp_path / "a")).err
    assert str(tmp_path / "a") in before.err
