"""Two replays of one recording, held against it and against each other: what varies by itself, and the rules that would forgive that."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING

from secondtake.cassettes.calibration import Asked, Varying, proposals, unforgiven, varying
from secondtake.cassettes.catalogue import Catalogue
from secondtake.cassettes.declared import Declared, rules_of
from secondtake.cassettes.merging import merged
from secondtake.harness.drivers import AUTO
from secondtake.harness.replaying import BY_CONTENT, opened
from secondtake.harness.session import replay_session
from secondtake.proxy.policy import Pace

if TYPE_CHECKING:
    from secondtake.cassettes.memory import Recorded
    from secondtake.cassettes.player import Player
    from secondtake.harness.plan import Matching, Stage, Where
    from secondtake.harness.results import Replayed


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A calibration that ended."""

    name: str
    runs: tuple[Replayed, Replayed]
    varying: tuple[Varying, ...]
    proposed: tuple[Declared, ...]
    refused: tuple[tuple[Declared, str], ...]
    """Rules that would have been proposed, and why they are not."""
    left: int
    """Requests of both replays that would still differ with the proposed rules."""


async def calibrate_session(
    stage: Stage,
    name: str,
    agent: Sequence[str],
    *,
    where: Where,
    driver: str = AUTO,
    matching: Matching = BY_CONTENT,
    announce: Callable[[tuple[str, ...]], None] = lambda _calls: None,
    begun: Callable[[int], None] = lambda _number: None,
    stdout: IO[bytes] | int | None = None,
) -> Calibrated:
    """Replay `name` twice with `agent`, placing by position what misses by content, and say what varies. `begun` gets 1 and 2.

    Raises:
        RecordedError: as for `replay_session`.
    """
    results: list[Replayed] = []
    players: list[Player] = []
    heard: tuple[list[Asked], list[Asked]] = ([], [])

    def listen(player: Player) -> None:
        players.append(player)
        kept = heard[len(players) - 1]
        player.on_answer = lambda request, content, found: kept.append(Asked.of(request, content, found))

    for number in (1, 2):
        begun(number)
        results.append(
            await replay_session(
                stage,
                name,
                agent,
                pace=Pace.FAST,
                where=where,
                driver=driver,
                matching=replace(matching, positional=True),
                keep_going=True,
                asked=listen,
                command=f"secondtake calibrate {shlex.quote(name)}{stage.again}",
                announce=announce,
                stdout=stdout,
            )
        )
    runs = tuple(heard[0]), tuple(heard[1])
    with opened(stage, name) as cassette:
        catalogues = _catalogue(cassette, players[0]), _catalogue(cassette, players[1])
        found = varying(catalogues, runs)
        proposed, refused = judged(cassette, players[0], proposals(found))
        left = sum(unforgiven(_catalogue(cassette, player, proposed), run) for player, run in zip(players, runs, strict=True))
        return Calibrated(cassette.name, (results[0], results[1]), found, proposed, refused, left)


def _catalogue(cassette: Recorded, player: Player, more: Sequence[Declared] = ()) -> Catalogue:
    chosen = player.options
    return Catalogue(
        cassette,
        rules=(*chosen.rules, *rules_of(more)),
        aliases=chosen.aliases,
        allow_push=chosen.allow_push,
        recorded_aliases=chosen.recorded_aliases,
    )


def judged(cassette: Recorded, player: Player, rules: Sequence[Declared]) -> tuple[tuple[Declared, ...], tuple[tuple[Declared, str], ...]]:
    """Take the rules one by one, and leave out each that makes two recorded requests one."""
    taken: tuple[Declared, ...] = ()
    refused: list[tuple[Declared, str]] = []
    for rule in rules:
        found = merged(_catalogue(cassette, player, (*taken, rule)))
        if found is None:
            taken = (*taken, rule)
        else:
            refused.append((rule, f"it would make exchanges {found[0]} and {found[1]} one request, although they differ at {found[2]}"))
    return taken, tuple(refused)
