"""Which seal is made where, for whom, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from secondtake.cassettes.errors import BadInput
from secondtake.harness.seal import Bind, SealBroken, Tier, Wanted
from secondtake.harness.seal.inside import NOT_SEALED
from tests.harness.processes import Pipe
from tests.harness.seal.scenes import (
    PREFIXES,
    PYTHON,
    ROOT,
    Host,
    agent,
    as_other,
    host_unchanged,
    needs,
    other_user,
    proxy,
    run,
    script,
    stand,
)
from tests.proxy.world import HOST, World, reply, simple

HERE = Path(__file__).parent


class TestTiers:
    def test_off_is_no_seal(self, tmp_path: Path) -> None:
        """`--seal off`: the command as it is, and what that leaves open is said."""
        ran = run(tmp_path, *PYTHON, "print('ran')", wanted=Wanted.OFF, tier=Tier.COOPERATIVE)
        assert (ran.out, ran.seal.prefix, ran.seal.refused, ran.seal.binds_done) == ("ran\n", (), (), False)
        assert ran.seal.holes == ("nothing is proven: only variables point at the proxy",)

    @pytest.mark.parametrize(
        ("refused", "tier", "reasons"),
        [("users", "sealed-root", 1), ("namespaces", "fenced", 2), ("namespaces landlock", "cooperative", 3)],
    )
    def test_what_the_machine_refuses_is_told_and_the_next_tier_is_taken(
        self, tmp_path: Path, refused: str, tier: str, reasons: int
    ) -> None:
        """D6: tried, never guessed; degraded by name."""
        needs("curl")
        if os.geteuid() != 0:
            pytest.skip("root is not who runs the tests")
        code = f"""
import asyncio, sys
sys.path[:0] = {[str(ROOT / ".src"), str(ROOT)]!r}
from pathlib import Path
from tests.harness.seal.scenes import *
ran = run(Path({str(tmp_path)!r}), "/bin/sh", "-c", "curl -sS --noproxy '*' http://127.0.0.1:%d/; exit 7" % {_listening()}, tier=None)
print(ran.seal.tier, ran.finished.status, "Couldn't connect" in ran.out, len(ran.seal.refused), *ran.seal.refused, sep="|")
"""
        done = script("refusing.py", *refused.split(), "--", sys.executable, "-I", "-c", code)
        assert done.returncode == 0, done.stderr
        said = done.stdout.strip().split("|")
        if said[0] == "cooperative" and tier == "fenced":
            pytest.skip(f"no Landlock network rules here: {said[-1]}")
        assert said[:4] == [tier, "7", "True", str(reasons)]
        assert all(reason.startswith(("sealed: ", "sealed-root: ", "fenced: ")) for reason in said[4:])
        assert "Operation not permitted" in said[4]

    def test_a_seal_that_is_required_and_refused_stops_the_run(self, tmp_path: Path) -> None:
        """D-01: with the reason, and the flag for less."""
        code = f"""
import sys
sys.path[:0] = {[str(ROOT / ".src"), str(ROOT)]!r}
from pathlib import Path
from tests.harness.seal.scenes import *
from secondtake.harness.seal import SealBroken
try:
    run(Path({str(tmp_path)!r}), "/bin/echo", "ran", wanted=Wanted.REQUIRE, tier=None)
except SealBroken as error:
    print(error, error.hint, sep="|")
"""
        done = script("refusing.py", "namespaces", "--", sys.executable, "-I", "-c", code)
        said, hint = done.stdout.split("|")
        assert "user namespace: Operation not permitted" in said
        assert "--seal auto" in hint

    def test_a_seal_that_lets_something_through_is_broken(self, tmp_path: Path) -> None:
        """D-02: the self-test finds what can be reached; the run stops also where less was wanted."""

        async def go() -> None:
            from secondtake.harness.seal import gateway

            class Leaking(gateway.Gateway):
                def open(self) -> None:
                    super().open()
                    self.order["host_port"] = self.proxy_port  # a port that can be reached inside

            async with proxy() as standing:
                with pytest.MonkeyPatch.context() as patch:
                    patch.setattr("secondtake.harness.seal.sealing.Gateway", Leaking)
                    with pytest.raises(SealBroken, match="a loopback port of the host"):
                        await stand(tmp_path, standing.port).__aenter__()

        if run(tmp_path, "/bin/true", tier=None).seal.tier is Tier.SEALED:
            asyncio.run(go())

    def test_a_seal_that_cannot_be_made_again_for_the_agent_is_told(self, tmp_path: Path) -> None:
        """D-01: what was there for the trial and is gone for the start; the agent does not run without it."""
        copy = tmp_path / "copy"
        copy.mkdir()

        async def go() -> str:
            async with proxy() as standing, stand(tmp_path, standing.port, binds=[Bind(copy, Path("/recorded"))]) as seal:
                if seal.tier is not Tier.SEALED:
                    pytest.skip(f"no tier `sealed` here: {'; '.join(seal.refused)}")
                copy.rmdir()
                finished, out = await agent(seal, tmp_path, ["/bin/echo", "ran"])
                assert finished.status == NOT_SEALED
                return out

        with pytest.raises(SealBroken, match="mounts: No such file or directory"):
            asyncio.run(go())

    def test_an_ordinary_user_is_sealed_as_root_is(self) -> None:
        """Issue 5: root and unprivileged both. The same agents, as another user of this machine."""
        with other_user() as folder:
            tests = ["-q", "-p", "no:cacheprovider", f"--basetemp={folder}/t", "-rs", str(HERE / "test_ways_out.py")]
            done = as_other(folder, "-m", "pytest", *tests)
        assert done.returncode == 0, done.stdout
        assert " passed" in done.stdout
        assert "no tier" not in done.stdout

    def test_where_proc_is_covered_the_agent_has_no_processes_of_its_own_and_that_is_told(self) -> None:
        """D6, a container: the kernel gives no new /proc where the old one is partly hidden. Sealed all the same."""
        code = f"""
import sys
sys.path[:0] = {[str(ROOT / ".src"), str(ROOT)]!r}
from pathlib import Path
from tests.harness.seal.scenes import *
ran = run(Path(sys.argv[1]), "/bin/sh", "-c", "curl -sS --noproxy '*' http://192.0.2.1:81/; (setsid sleep 300) & exit 4", tier=None)
print(ran.seal.tier, ran.finished.status, *ran.attempts, *ran.seal.holes, sep="|")
"""
        needs("curl")
        with other_user() as folder:
            done = as_other(folder, "-c", code, str(folder), covered=True)
        assert done.stdout == "sealed|4|tcp 192.0.2.1:81|the agent sees the other processes of its user\n", done.stderr


class TestBinds:
    def test_a_copy_stands_at_the_recorded_place_for_the_agent_alone(self, tmp_path: Path) -> None:
        """DESIGN 6: at the recorded path, also where this machine has none of that name."""
        copy = tmp_path / "copy"
        copy.mkdir()
        (copy / "which").write_text("copy")
        for target in (tmp_path / "original", Path("/recorded-elsewhere/project"), Path("/usr/share/nobody/project")):
            ran = run(tmp_path, "/bin/sh", "-c", "pwd; cat which; echo new > made", binds=[Bind(copy, target)], cwd=target, where=copy)
            assert (ran.out, ran.seal.binds_done) == (f"{target}\ncopy", True)
            assert not target.exists()
            assert (copy / "made").read_text() == "new\n"

    def test_a_bind_that_is_not_writable_is_not(self, tmp_path: Path) -> None:
        """What the agent may only read."""
        given, target = tmp_path / "given", tmp_path / "target"
        given.write_text("as it was")
        ran = run(tmp_path, "/bin/sh", "-c", f"cat {target}; echo other > {target}", binds=[Bind(given, target, writable=False)])
        assert ran.out.startswith("as it was")
        assert "Read-only" in ran.out
        assert given.read_text() == "as it was"

    def test_what_is_named_stays_readable_under_a_seeded_home(self, tmp_path: Path) -> None:
        """DESIGN 6, HOME seed: the trust bundle lies in the real one, and the agent must read it there; nothing else of it is seen."""
        home, seed = tmp_path / "home", tmp_path / "seed"
        for folder in (home / "store", seed):
            folder.mkdir(parents=True)
        bundle = home / "store/bundle.pem"
        bundle.write_text("trusted\n")
        (home / "secret").write_text("x")
        (seed / ".rc").write_text("seeded\n")
        code = f"cat {bundle} .rc; echo >> {bundle}; ls -A; ls store"
        ran = run(tmp_path, "/bin/sh", "-c", code, binds=[Bind(seed, home)], readable=(*PREFIXES, bundle), cwd=home, where=home)
        assert ran.out.startswith("trusted\nseeded\n")
        assert "Read-only" in ran.out
        assert ran.out.endswith("\n.rc\nstore\nbundle.pem\n")
        assert bundle.read_text() == "trusted\n"
        assert [path.name for path in seed.iterdir()] == [".rc"]

    @pytest.mark.parametrize("target", ["/", "/proc/sys", "relative", "/a/../etc"])
    def test_nothing_is_put_where_it_would_hide_the_machine(self, tmp_path: Path, target: str) -> None:
        """A recorded path is a stranger's word."""
        with pytest.raises(BadInput, match="nothing can be put at"):
            run(tmp_path, "/bin/true", binds=[Bind(tmp_path, Path(target))])


class TestCapture:
    @pytest.mark.parametrize(("client", "scheme"), [("curl", "https"), ("node", "https"), ("curl", "http")])
    def test_a_recorded_page_reaches_a_program_that_ignores_the_proxy(self, tmp_path: Path, client: str, scheme: str) -> None:
        """D-03: transparent capture through the real proxy, https verified against our authority, http as it is."""
        program = needs(client)
        tls = scheme == "https"

        async def go() -> tuple[str, int]:
            async with World(tmp_path, {b"/page": reply(simple(b"as recorded"))}, tls=tls) as world:
                await world.record(routes={HOST: f"{scheme}://127.0.0.1:{world.origin.port}"})
                recorded = await (world.client(HOST, 443) if tls else world.plain())
                target = "/page" if tls else f"http://{HOST}/page"
                await recorded.send(f"GET {target} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
                assert (await recorded.response()).body == b"as recorded"
                wire = await world.replay(uid=os.getuid())
                assert world.proxy is not None
                before = len(world.origin.heads)
                command = {
                    "curl": [program, "-sS", "--noproxy", "*", f"{scheme}://{HOST}/page"],
                    "node": [program, "-e", f"require('https').get('https://{HOST}/page',r=>r.pipe(process.stdout))"],
                }[client]
                ca = str(world.authority.ca_path)
                async with stand(tmp_path, world.proxy.port, known_hosts={HOST}, readable=(*PREFIXES, tmp_path)) as seal:
                    if seal.tier is not Tier.SEALED:
                        pytest.skip(f"no tier `sealed` here: {'; '.join(seal.refused)}")
                    _, out = await agent(seal, tmp_path, command, env={"CURL_CA_BUNDLE": ca, "NODE_EXTRA_CA_CERTS": ca})
                assert (seal.attempts, len(world.origin.heads)) == ([], before)
                return out, wire.outcome.requests

        assert asyncio.run(go()) == ("as recorded", 1)

    def test_two_agents_at_once_have_each_their_own_ports_and_names(self, tmp_path: Path) -> None:
        """D-10: the same port twice, and each one's attempts with its own seal."""
        code = """
import socket, sys, urllib.request
server = socket.create_server(("127.0.0.1", 8000))
try: socket.create_connection((sys.argv[1], 9999))
except OSError: pass
print(open("/proc/net/tcp").read().count(":1F40 "), flush=True)
sys.stdin.readline()
"""

        async def go() -> list[set[str]]:
            async with (
                proxy() as standing,
                stand(_folder(tmp_path, "a"), standing.port) as one,
                stand(_folder(tmp_path, "b"), standing.port) as two,
            ):
                if one.tier is not Tier.SEALED:
                    pytest.skip(f"no tier `sealed` here: {'; '.join(one.refused)}")
                ran = await asyncio.gather(
                    agent(one, tmp_path / "a", [*PYTHON, code, "198.51.100.1"]), agent(two, tmp_path / "b", [*PYTHON, code, "198.51.100.2"])
                )
                assert [out for _, out in ran] == ["1\n", "1\n"]
            return [set(map(str, seal.attempts)) for seal in (one, two)]

        assert asyncio.run(go()) == [{"tcp 198.51.100.1:9999"}, {"tcp 198.51.100.2:9999"}]


class TestEnds:
    @pytest.mark.parametrize(("code", "status", "number"), [("exit 3", 3, None), ("kill -9 $$", 137, 9), ("kill -TERM $$", 143, 15)])
    def test_it_ends_as_the_agent_ends(self, tmp_path: Path, code: str, status: int, number: int | None) -> None:
        """D-06: exit status, and the signal."""
        with host_unchanged():
            ran = run(tmp_path, "/bin/sh", "-c", code, tier=None)
        assert (ran.finished.status, ran.finished.signal) == (status, number)
        assert list((tmp_path / "run").iterdir()) == []

    @pytest.mark.parametrize(("program", "status"), [("/nonexistent", 127), ("/etc/passwd", 126), ("no-such-command", 127)])
    def test_what_cannot_be_executed_ends_as_in_a_shell(self, tmp_path: Path, program: str, status: int) -> None:
        """126 and 127."""
        assert run(tmp_path, program, tier=None).finished.status == status

    def test_what_the_agent_leaves_running_is_counted_and_ended(self, tmp_path: Path) -> None:
        """As without a seal: each daemon is one, process 1 is none."""
        code = "for each in 1 2 3; do setsid sleep 300 & done; exit 0"
        with host_unchanged():
            finished = run(tmp_path, "/bin/sh", "-c", code, tier=None).finished
        assert (finished.status, finished.strays, finished.left) == (0, 3, 0)

    def test_a_time_limit_ends_everything_inside(self, tmp_path: Path) -> None:
        """Issue 5: time-outs end the whole tree, daemons too."""

        async def go() -> tuple[int, bool]:
            async with proxy() as standing, stand(tmp_path, standing.port) as seal:
                finished, _ = await agent(
                    seal, tmp_path, ["/bin/sh", "-c", "(trap '' TERM; setsid sleep 300) & sleep 300"], timeout_s=0.3, grace_s=0.1
                )
                return finished.left, finished.timed_out

        with host_unchanged():
            assert asyncio.run(go()) == (0, True)

    def test_killed_at_any_instant_it_leaves_nothing(self, tmp_path: Path) -> None:
        """D-05: we, the launcher, the process outside, process 1 inside or the agent, at twenty instants; nobody lives on."""
        before = Host.now()
        for start in range(0, 20, 4):  # four at once: the machine has few processors
            with contextlib.ExitStack() as stack:
                runs = [stack.enter_context(_killed(tmp_path / str(number), number)) for number in range(start, start + 4)]
                for each in runs:
                    each.strike()
                for each in runs:
                    each.gone()
        assert Host.now() == before


AGENT = "sleep 300 & (setsid sleep 300 &); trap '' TERM; echo agent; exec sleep 300"


class _Run:
    """One sealed agent, to be killed `number` instants after its start. The pipe ends when no process of it holds it any more."""

    def __init__(self, folder: Path, number: int, pipe: Pipe) -> None:
        folder.mkdir(mode=0o700)
        self.number, self.pipe, self.said = number, pipe, b""
        env = {**os.environ, "PYTHONPATH": f"{ROOT / '.src'}:{ROOT}"}
        command = [sys.executable, str(HERE / "driver.py"), str(folder), "0.1", "/bin/sh", "-c", AGENT]
        self.began = time.monotonic()
        self.process = subprocess.Popen(command, env=env, stdout=pipe.writer, stderr=pipe.writer, stdin=subprocess.DEVNULL)
        pipe.close_writer()

    def strike(self) -> None:
        """Kill the `number % 5`-th of the chain of processes, if it is there already, else the last that is.

        Who ends the agent's start only, a trial, has not ended the run: then it is we who are killed next.
        """
        self._read(self.began + 0.15 + 0.06 * self.number)
        chain = [self.process.pid]
        while below := _children(chain[-1]):
            chain.append(below[0])
        with contextlib.suppress(ProcessLookupError):
            os.kill(chain[min(self.number % 5, len(chain) - 1)], signal.SIGKILL)
            if b"agent" not in self.said:
                self.process.kill()

    def gone(self) -> None:
        """Everybody's end is the pipe's end."""
        assert self._read(time.monotonic() + 20), f"killed as number {self.number}, and somebody lives on: {self.said!r}"
        self.process.wait()

    def _read(self, until_s: float) -> bool:
        """Read to the end, or to that time; says whether the end came."""
        while True:
            ready, _, _ = select.select([self.pipe.reader], [], [], max(0.0, until_s - time.monotonic()))
            if not ready:
                return False
            if not (piece := os.read(self.pipe.reader, 4096)):
                return True
            self.said += piece


@contextlib.contextmanager
def _killed(folder: Path, number: int) -> Iterator[_Run]:
    pipe = Pipe()
    made = _Run(folder, number, pipe)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
        pipe.close()


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


def _folder(parent: Path, name: str) -> Path:
    (parent / name).mkdir()
    return parent / name


def _listening() -> int:
    """A port of this machine's loopback on which nobody listens for the agent."""
    return 1
