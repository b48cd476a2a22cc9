"""The outside, by itself: its sockets, its names, its doors."""

from __future__ import annotations

import asyncio
import socket
import stat
from collections.abc import Set
from pathlib import Path

from secondtake.harness.seal import Seal, Tier
from secondtake.harness.seal.gateway import Gateway, Started
from tests.harness.seal.test_names import question


def gateway(folder: Path, *, known_hosts: Set[str] | None = None) -> Gateway:
    return Gateway(folder, {}, Seal(Tier.SEALED), proxy_port=9, credential=None, now_us=lambda: 5, known_hosts=known_hosts)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


def test_it_leaves_nothing_and_takes_away_what_a_killed_one_left(tmp_path: Path) -> None:
    """D-05: sockets in the run directory."""
    stale = tmp_path / "seal-dead.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as dead:
        dead.bind(str(stale))

    async def go() -> None:
        one, other = gateway(tmp_path), gateway(tmp_path)
        one.open()
        other.open()
        assert names(tmp_path) == {one.path.name, other.path.name}
        assert modes(tmp_path) == {0o600}
        await one.close()
        await other.close()

    asyncio.run(go())
    assert list(tmp_path.iterdir()) == []


def test_a_long_run_directory_is_no_obstacle(tmp_path: Path) -> None:
    """The path of a socket is 107 bytes at most; a store may lie deeper."""
    folder = tmp_path / ("deep" * 30)
    folder.mkdir()

    async def go() -> None:
        made = gateway(folder)
        made.open()
        assert names(folder) == {made.path.name}
        await made.close()

    asyncio.run(go())


def test_each_name_is_told_once_and_a_new_one_is_an_attempt(tmp_path: Path) -> None:
    """D-08: however often and in whichever family it is asked for; the self-test's own is not the agent's."""

    async def go() -> None:
        made = gateway(tmp_path, known_hosts={"known.example"})
        for name, kind in (
            ("new.example", 1),
            ("new.example", 28),
            ("NEW.example", 1),
            ("known.example", 1),
            ("localhost", 1),
            (made.nonce, 1),
        ):
            assert made._reply(question(name, kind)) is not None
        assert made._reply(b"x") is None
        assert made.seal.names == ["new.example", "known.example", "localhost"]
        assert list(map(str, made.seal.attempts)) == ["dns new.example"]
        assert made.seal.attempts[0].at_us == 5

    asyncio.run(go())


def test_an_agent_starts_only_after_a_clean_self_test(tmp_path: Path) -> None:
    """D-02: what was found or refused means no."""

    async def go() -> None:
        made = gateway(tmp_path)
        assert made._obey(Started(), {"problems": []}, []) == {"go": True}
        assert made._obey(Started(), {"problems": ["a way out"]}, []) == {"go": False}
        assert made._obey(Started(), {"refused": "mounts"}, []) == {"go": False}
        assert made._obey(Started(trial=False), {"problems": [], "holes": ["standard input is a network connection"]}, []) == {"go": True}
        assert made.seal.holes == ("standard input is a network connection",)

    asyncio.run(go())
