"""A recording from its name to its last word: the proxy that records, the cassette that is being written, what came of it."""

from __future__ import annotations

import os
import platform
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from secondtake.cassettes import stages
from secondtake.cassettes.errors import NameTaken, RecordedError
from secondtake.cassettes.exchange import Channel
from secondtake.cassettes.integrity import Mismatch, mismatches
from secondtake.cassettes.stages import UNSTAGED, Staged
from secondtake.harness.equipment import Equipment, credential_variables
from secondtake.harness.judge import record_problems, unlike_announced
from secondtake.harness.names import generated_name
from secondtake.harness.results import Recorded
from secondtake.proxy.addon import Wire
from secondtake.proxy.policy import Mode, Sockets
from secondtake.proxy.server import Proxy, quiet
from secondtake.proxy.settings import Settings

if TYPE_CHECKING:
    from secondtake.cassettes.writer import Writer
    from secondtake.harness.plan import HostRules, Naming, Stage
    from secondtake.proxy.outcome import Outcome


def clock_us(stage: Stage) -> Callable[[], int]:
    """Return a clock that counts microseconds from now."""
    begun_s = stage.monotonic_s()
    return lambda: round((stage.monotonic_s() - begun_s) * 1_000_000)


def clock_s(stage: Stage) -> Callable[[], int]:
    """Return the wall clock, in seconds since 1970."""
    return lambda: int(stage.now().timestamp())


@dataclass(frozen=True, slots=True)
class Take:
    """A recording that has begun."""

    stage: Stage
    writer: Writer
    begun_s: float

    def discard(self) -> None:
        """Nothing was recorded, and nothing will be: leave no trace."""
        self.writer.abandon()
        self.stage.store.remove(self.writer.name)

    def close(self, outcome: Outcome, agent: Sequence[str], bundle: Path, status: int | None, staged: Staged = UNSTAGED) -> Recorded:
        elapsed_us = round((self.stage.monotonic_s() - self.begun_s) * 1_000_000)
        problems = record_problems(outcome, agent, bundle)
        root = self.writer.close(
            meta={
                "ended": self.stage.now().isoformat(timespec="seconds"),
                "elapsed_us": elapsed_us,
                "agent_status": status,
                "problems": [[problem.kind, problem.message] for problem in problems],
                "passed_through": dict(outcome.passed_through),
                **({stages.META: staged.packed()} if staged != UNSTAGED else {}),
            }
        )
        failed = outcome.failed or self.writer.failed
        if failed is not None and outcome.failed is None:
            outcome.failed = failed
            problems = record_problems(outcome, agent, bundle)
        counts, sent, received, wrong = self._counted()
        problems = (*problems, *unlike_announced(wrong))
        return Recorded(self.writer.name, None if failed else root, status, counts, sent, received, elapsed_us, problems, staged=staged)

    def _counted(self) -> tuple[Mapping[Channel, int], int, int, tuple[Mismatch, ...]]:
        """What is kept, by channel, and files unlike their index's word: read back from the store: what a reader will find."""
        try:
            cassette = self.stage.store.open(self.writer.name)
        except RecordedError:
            return {}, 0, 0, ()
        try:
            rows = cassette.rows
            counts = Counter(row.channel for row in rows)
            sent, received = sum(row.request_size for row in rows), sum(row.response_size for row in rows)
            return dict(counts), sent, received, tuple(mismatches(cassette))
        except RecordedError:
            return {}, 0, 0, ()
        finally:
            cassette.close()


def recording_proxy(stage: Stage, wire: HostRules, equipment: Equipment, *, port: int) -> Proxy:
    settings = Settings(
        mode=Mode.RECORD,
        trust=equipment.origins,
        host=equipment.listen,
        port=port,
        routes=wire.routes,
        upstream=equipment.upstream,
        strict=wire.strict,
        credential=equipment.credential,
        uid=os.getuid(),
        loopback=wire.loopback,
        passthrough=wire.passthrough,
        only_hosts=wire.only_hosts,
        client_certs=wire.client_certs,
        quiet_telemetry=wire.quiet_telemetry,
        websocket=Sockets(wire.websocket),
    )
    quiet()
    return Proxy(settings, Wire(settings, equipment.authority, redactor=equipment.redactor, now_us=clock_us(stage), now_s=clock_s(stage)))


def begin(
    stage: Stage,
    naming: Naming,
    equipment: Equipment,
    port: int,
    *,
    agent: Sequence[str],
    wire: HostRules,
    said: Mapping[str, object] = MappingProxyType({}),
) -> Take:
    """Open the recording under the first name that is free. `said`: what else its meta says, of the agent."""
    redactor = equipment.redactor
    meta: dict[str, object] = {
        "created": stage.now().isoformat(timespec="seconds"),
        "secondtake": stage.version,
        "command": [redactor.text(word) for word in agent],
        "cwd": redactor.text(str(stage.cwd)),
        "home": redactor.text(str(stage.home)),
        "tmpdir": redactor.text(stage.environ.get("TMPDIR", "")),
        "routes": {host: redactor.text(url) for host, url in wire.routes.items()},
        "only_hosts": list(wire.only_hosts),
        "websocket": wire.websocket,
        "platform": f"{platform.system()} {platform.machine()}",
        "proxy": equipment.address(port),
        "bundle": str(equipment.bundle),
        "credentials": credential_variables(stage.environ),
        **said,
    }
    begun_s = stage.monotonic_s()
    if naming.name is None:
        taken = {summary.name for summary in stage.store.list()}
        name = naming.otherwise or generated_name(stage.now().date(), stage.random, taken)
        return Take(stage, stage.store.create(name, meta=meta), begun_s)
    try:
        return Take(stage, stage.store.create(naming.name, meta=meta, replace=naming.replace), begun_s)
    except NameTaken as taken_name:
        if naming.otherwise is not None:
            return Take(stage, stage.store.create(naming.otherwise, meta=meta), begun_s)
        raise NameTaken(str(taken_name), hint=taken_name.hint or "choose another name, or pass --replace, or --as NAME") from taken_name
