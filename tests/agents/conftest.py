"""Pytest fixtures of the agents tier: each agent is installed once, and its task recorded once. At the end, the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.agents.casts import CASTS, Cast
from tests.agents.installs import cache, installed
from tests.agents.installs import later as a_month_later
from tests.agents.runs import HEAD, Line, Run, begun, provided

LINES: list[Line] = []
"""The rows of the table, in the order in which the agents were recorded."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here is of the tier `agents`."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.agents)


@pytest.fixture(scope="session", params=CASTS, ids=lambda cast: cast.name)
def cast(request: pytest.FixtureRequest) -> Cast:
    """Each agent in turn."""
    made: Cast = request.param
    return made


@pytest.fixture(scope="session")
def run(cast: Cast, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The agent's task, recorded; the provider is gone."""
    made = begun(cast, installed(cast.driver), tmp_path_factory.mktemp(cast.name))
    with provided(cast) as provider:
        made.recorded = made.record("task", provider)
    if made.recorded.code == 0:
        made.line.exchanges = sum(made.recorded.result["exchanges"].values())
        LINES.append(made.line)
    return made


@pytest.fixture(scope="session")
def later() -> dict[str, str]:
    """What puts a run a month into the future."""
    return a_month_later()


def table(lines: Sequence[Line]) -> str:
    """Markdown."""
    rows = [list(HEAD), ["---"] * len(HEAD), *(line.cells() for line in lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was measured, and keep it beside the installed agents."""
    if LINES:
        text = table(LINES)
        kept = cache() / "table.md"
        kept.write_text(text)
        terminalreporter.section(f"agents (also in {kept})")
        terminalreporter.write_line(text)
