"""An envelope put together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from secondtake.cassettes import envelope
from secondtake.cassettes.artifacts import Artifact
from secondtake.cassettes.cassette import Cassette
from secondtake.cassettes.digest import digest_of
from secondtake.cassettes.envelope import FIELDS, UNKNOWN, Layer, Source, compare
from secondtake.cassettes.errors import Corrupt
from secondtake.cassettes.exchange import Digest
from secondtake.cassettes.memory import MemoryCassette
from secondtake.cassettes.redact import Redactor
from secondtake.harness.drivers import DRIVERS
from secondtake.harness.envelope.capture import KIND, Scene, envelope_now, envelope_of, loop_limit
from tests.harness.envelope.calls import ask, recorded
from tests.harness.stages import stage_in

CLAUDE = DRIVERS["claude"]
AGENT = ("claude", "-p", "fix it", "--max-turns", "20")
REDACTOR = Redactor(key=b"k" * 32)


class Kept(MemoryCassette):
    """A cassette in memory that says something of itself, and keeps an envelope."""

    def __init__(self, meta: dict[str, object], kept: bytes | None = None) -> None:
        calls = recorded(ask())
        super().__init__(calls.exchanges.values(), calls.bodies)
        self.meta = meta
        self.root = "ab" * 32
        self.artifacts = [] if kept is None else [Artifact(KIND, digest_of(kept), len(kept))]
        self._kept = kept

    def artifact(self, digest: Digest) -> bytes:
        """The one there is."""
        assert self._kept is not None
        assert digest == digest_of(self._kept)
        return self._kept


def of_cassette(kept: Kept) -> envelope.Envelope:
    """Its envelope."""
    return envelope_of(cast(Cassette, kept))


def scene(folder: Path) -> Scene:
    """An agent in a workspace with rules."""
    (folder / "CLAUDE.md").write_text("be brief")
    return Scene(
        AGENT, CLAUDE, repository={"commit": "c" * 40, "branch": "main", "dirty": None, "submodules": {}, "git": None, "tree": "t"}
    )


def test_before_a_run_everything_of_the_machine_is_there_and_everything_of_the_traffic_unknown(tmp_path: Path) -> None:
    """Issue 5, item 2: all seven layers."""
    now = envelope_now(stage_in(tmp_path, PATH="/nonexistent", LANG="C"), scene(tmp_path), REDACTOR)
    unknown = set(envelope.unknown(now))
    traffic = {f"{layer}.{each.name}" for layer in Layer for each in FIELDS[layer] if each.source is Source.TRAFFIC}
    assert unknown - {"environment.umask", "environment.container"} == traffic | {"orchestrator.version", "repository.not_captured"}
    assert list(cast("dict[str, str]", now.value(Layer.INSTRUCTIONS, "rules"))) == ["CLAUDE.md"]
    assert now.value(Layer.ORCHESTRATOR, "loop_limit") == 20


def test_taken_twice_it_is_equal_and_one_changed_thing_is_one_difference(tmp_path: Path) -> None:
    """Issue 5: `fixture check` says which layers differ."""
    stage = stage_in(tmp_path, PATH="/nonexistent", LANG="C")
    before = envelope_now(stage, scene(tmp_path), REDACTOR)
    assert envelope_now(stage, scene(tmp_path), REDACTOR).fingerprint == before.fingerprint
    other = replace(stage, environ={**stage.environ, "LANG": "de_AT.UTF-8"})
    (one,) = compare(before, envelope_now(other, scene(tmp_path), REDACTOR))
    assert (one.name, one.recorded, one.now) == ("environment.locale", {"LANG": "C"}, {"LANG": "de_AT.UTF-8"})


def test_a_secret_on_the_command_line_or_in_a_route_is_not_in_it(tmp_path: Path) -> None:
    """DESIGN 4: everything that enters the store passes the redactor."""
    secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
    made = replace(scene(tmp_path), agent=(*AGENT, secret), routes={"a.example": f"https://x:{secret}@b.example"})
    assert secret.encode() not in envelope.encode(envelope_now(stage_in(tmp_path, PATH="/nonexistent"), made, REDACTOR))


def test_a_recording_gives_what_was_taken_then_and_what_its_traffic_says(tmp_path: Path) -> None:
    """Issue 5: at record time and again at each take."""
    then = envelope_now(stage_in(tmp_path, PATH="/nonexistent"), scene(tmp_path), REDACTOR)
    whole = of_cassette(Kept({"command": list(AGENT)}, envelope.encode(then)))
    assert compare(then, whole, source=Source.MACHINE) == ()
    assert whole.value(Layer.EXTERNAL, "cassette") == "ab" * 32
    assert whole.value(Layer.MODEL, "requested") != UNKNOWN


def test_a_recording_from_before_has_what_it_says_of_itself() -> None:
    """Issue 5: it works for cassettes recorded before envelopes were; what is not known is `unknown`."""
    noted = {"name": "claude", "version": "2.1.197", "switches": {"DISABLE_TELEMETRY": "1"}, "seed": [".claude.json"]}
    old = of_cassette(Kept({"command": list(AGENT), "driver": noted, "platform": "Linux x86_64", "routes": {"a": "http://b"}}))
    assert old.value(Layer.ORCHESTRATOR, "agent") == "claude"
    assert old.value(Layer.ORCHESTRATOR, "version") == "2.1.197"
    assert old.value(Layer.ORCHESTRATOR, "loop_limit") == 20
    assert old.value(Layer.ENVIRONMENT, "architecture") == "x86_64"
    assert old.value(Layer.ENVIRONMENT, "home") == [".claude.json"]
    assert old.value(Layer.EXTERNAL, "routes") == {"a": "http://b"}
    assert old.value(Layer.ENVIRONMENT, "kernel") == UNKNOWN
    assert old.value(Layer.REPOSITORY, "tree") == UNKNOWN


@pytest.mark.parametrize("meta", [{}, {"command": 3, "driver": [], "platform": None, "routes": "x"}, {"command": [1, "a"]}])
def test_what_a_stranger_says_of_himself_is_no_error(meta: dict[str, object]) -> None:
    """A cassette's meta is untrusted."""
    assert of_cassette(Kept(meta)).value(Layer.MODEL, "requested") != UNKNOWN


def test_a_kept_envelope_that_is_none_is_damage() -> None:
    """Damage is an error, never absence."""
    with pytest.raises(Corrupt):
        of_cassette(Kept({}, b"{}"))


@pytest.mark.parametrize(
    ("command", "limit"),
    [(("a", "--max-turns", "7"), 7), (("a", "--max-turns=7"), 7), (("a",), UNKNOWN), (("a", "--max-turns"), UNKNOWN), ((), UNKNOWN)],
)
def test_a_loop_limit_is_read_from_the_command_line(command: tuple[str, ...], limit: object) -> None:
    """DESIGN 6, orchestrator: loop limit."""
    assert loop_limit(command) == limit
