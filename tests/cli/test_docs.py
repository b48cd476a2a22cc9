"""The manual and the commands are one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from secondtake.cli.main import root

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"
BLOCK = re.compile(r"<!-- help: (.+?) -->\n(.*?)<!-- end -->", re.DOTALL)


def commands(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    """Every command and subcommand by its full name."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


COMMANDS = dict(commands(root))


def help_of(name: str) -> str:
    """The `--help` of a command, 100 columns wide."""
    context = click.Context(root, info_name="secondtake")
    group: click.Group = root
    command: click.Command = root
    for word in name.split():
        found = group.get_command(context, word)
        assert found is not None
        command = found
        context = click.Context(command, info_name=word, parent=context, terminal_width=100, help_option_names=["--help", "-h"])
        if isinstance(command, click.Group):
            group = command
    return command.get_help(context)


def test_the_help_blocks_are_the_programs_own() -> None:
    """STYLE, sqlite-utils: the reference is made from --help, and CI fails if it is stale. SECONDTAKE_GOLDEN=write writes it."""
    text = PAGE.read_text(encoding="utf-8")
    fresh = BLOCK.sub(lambda found: f"<!-- help: {found[1]} -->\n```\n{help_of(found[1])}\n```\n<!-- end -->", text)
    if os.environ.get("SECONDTAKE_GOLDEN") == "write":
        PAGE.write_text(fresh, encoding="utf-8")
        text = fresh
    assert fresh == text


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_is_in_the_manual_with_an_example_and_its_help(name: str) -> None:
    """STYLE, sqlite-utils: each command must be in the docs."""
    page = PAGE.read_text(encoding="utf-8")
    assert re.search(rf"^###? {re.escape(name)}$", page, re.MULTILINE)
    assert f"\n$ secondtake {name}" in page
    assert f"<!-- help: {name} -->" in page


def test_the_manual_names_no_command_that_is_not_there() -> None:
    """A command that went away goes from the manual too."""
    page = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"^###? (.+)$", page, re.MULTILINE)) == set(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_takes_the_common_options(name: str) -> None:
    """DESIGN 7: --json on every command; --store and --quiet with it. A group only holds commands."""
    if not isinstance(COMMANDS[name], click.Group):
        options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
        assert {"--json", "--store", "--quiet"} <= options


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_command_and_option_says_what_it_is_for(name: str) -> None:
    """A person can find out from --help alone; the first line fits the list of commands."""
    command = COMMANDS[name]
    assert command.help
    assert "..." not in command.get_short_help_str(78)
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
