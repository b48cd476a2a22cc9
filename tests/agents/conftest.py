"""Pytest fixtures of the agents tier: each agent is installed once, and does its course once. At the end, the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.agents.casts import CASTS, Cast
from tests.agents.courses import Course, Courses
from tests.agents.installs import cache
from tests.agents.runs import HEAD, Line

LINES: list[Line] = []
"""The rows of the table."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here is of the tier `agents`."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.agents)


@pytest.fixture(scope="session", autouse=True)
def courses(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Courses]:
    """The courses of the agents that were selected, begun with the first test here, whichever it is."""
    chosen = {item.callspec.params["cast"].name for item in request.session.items if "course" in getattr(item, "fixturenames", ())}  # type: ignore[attr-defined]  # pytest's own items
    made = Courses([cast for cast in CASTS if cast.name in chosen], tmp_path_factory.mktemp("agents"))
    yield made
    made.stop()
    LINES.extend(sorted(made.lines, key=lambda line: line.agent))


@pytest.fixture(scope="session", params=CASTS, ids=lambda cast: cast.name)
def cast(request: pytest.FixtureRequest) -> Cast:
    """Each agent in turn."""
    made: Cast = request.param
    return made


@pytest.fixture(scope="session")
def course(cast: Cast, courses: Courses) -> Course:
    """What is done with the agent; each step is waited for when it is looked at."""
    return courses.of(cast)


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
