"""An agent under the real tracer."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from secondtake.harness.launch import Finished, launch
from secondtake.harness.seal import Bind, Tier, Wanted, sealed
from secondtake.harness.tracing import UNDER, Source, Tracer, traced

STRACE = shutil.which("strace")
needs_strace = pytest.mark.skipif(STRACE is None, reason="strace is not on this machine")


def run(tracer: Tracer, *agent: str, cwd: Path, env: dict[str, str] | None = None) -> Finished:
    environment = {**os.environ, **(env or {})}
    return asyncio.run(launch((*tracer.prefix, *agent), env=environment, cwd=cwd, aside=str(tracer.log)))


@needs_strace
class TestTraced:
    def test_each_command_has_its_words_place_parent_and_end(self, tmp_path: Path) -> None:
        """D-11, with what is hard: bytes that are not UTF-8, a line break, a kill, an `exec`, a command of a thread."""
        (tmp_path / "sub").mkdir()
        program = tmp_path / "agent.py"
        program.write_text(
            "import os, subprocess, threading\n"
            'subprocess.run(["/bin/echo", b"\\xff\\n\\"quoted\\"", "é"], stdout=subprocess.DEVNULL)\n'
            'thread = threading.Thread(target=lambda: subprocess.run(["/bin/sh", "-c", "kill -9 $$"]))\n'
            "thread.start(); thread.join()\n"
            'subprocess.run(["/bin/sh", "-c", "(cd sub; exec /bin/sh -c \'exit 7\')"])\n'
            "os.execv('/bin/sh', ['sh', '-c', 'exit 3'])\n"
        )
        tracer = traced(tmp_path / "log", cwd=tmp_path)
        finished = run(tracer, sys.executable, "-I", "-S", str(program), cwd=tmp_path)
        seen = tracer.result()
        assert (finished.status, finished.strays, seen.source, seen.reason, seen.lost) == (3, 0, Source.KERNEL, "", 0)
        agent = seen.commands[0]
        assert (agent.pid, agent.parent, agent.cwd, agent.replaced) == (finished.pid, 0, str(tmp_path), True)
        told = [(one.argv, one.cwd, one.exit_code, one.signal) for one in seen.commands[1:]]
        here = str(tmp_path)
        assert told[:2] == [
            (("/bin/echo", '\udcff\n"quoted"', "é"), here, 0, None),
            (("/bin/sh", "-c", "kill -9 $$"), here, None, 9),
        ]
        assert (("/bin/sh", "-c", "exit 7"), f"{here}/sub", 7, None) in told
        assert told[-1] == (("sh", "-c", "exit 3"), here, 3, None)
        assert {one.parent for one in seen.commands[1:-1]} <= {agent.pid, *(one.pid for one in seen.commands)}
        assert all(one.ended_us is not None and one.ended_us >= one.started_us >= 0 for one in seen.commands)

    def test_times_are_counted_from_the_recording_s_beginning(self, tmp_path: Path) -> None:
        """One time axis for commands and exchanges."""
        before_us = time.time_ns() // 1000
        tracer = traced(tmp_path / "log", cwd=tmp_path, elapsed_us=5_000_000)
        run(tracer, "true", cwd=tmp_path)
        (one,) = tracer.commands()
        assert 5_000_000 < one.started_us < time.time_ns() // 1000 - before_us + 5_000_000

    def test_what_the_agent_leaves_is_counted_and_ended_and_the_tracer_is_not_counted(self, tmp_path: Path) -> None:
        """D-06: status and strays are as without us; a background process does not keep the run from its end."""
        tracer = traced(tmp_path / "log", cwd=tmp_path)
        program = "import os, subprocess; subprocess.Popen(['sleep', '3600']); os._exit(5)"
        finished = run(tracer, sys.executable, "-I", "-S", "-c", program, cwd=tmp_path)
        assert (finished.status, finished.strays, finished.left) == (5, 1, 0)
        assert [(one.argv, one.exit_code, one.signal) for one in tracer.commands()][1:] == [(("sleep", "3600"), None, 15)]

    def test_the_agent_has_the_environment_it_was_given_and_the_tracer_has_not(self, tmp_path: Path) -> None:
        """A clock that is preloaded into the agent would give the tracer's times too."""
        tracer = traced(tmp_path / "log", cwd=tmp_path, environment={"SET": "for the agent"})
        show = 'test "$SET" = "for the agent" && test "$KEPT" = x && exit 4'
        assert run(tracer, "sh", "-c", show, cwd=tmp_path, env={"KEPT": "x"}).status == 4

    def test_connections_are_listed_where_they_are_asked_for(self, tmp_path: Path) -> None:
        """Tier `observed`: also one that is refused."""
        tracer = traced(tmp_path / "log", cwd=tmp_path, connections=True)
        program = "import socket\ns = socket.socket()\ns.connect_ex(('127.0.0.1', 9))\nsocket.socket(socket.AF_UNIX).connect_ex('/no/such')"
        run(tracer, sys.executable, "-I", "-S", "-c", program, cwd=tmp_path)
        found = [(one.kind, one.address, one.port) for one in tracer.result().connections]
        assert found == [("tcp", "127.0.0.1", 9), ("unix", "/no/such", None)]

    def test_an_ordinary_user_is_traced_too(self, tmp_path: Path) -> None:
        """D-16: nothing here needs a privilege."""
        if os.getuid() != 0 or shutil.which("setpriv") is None:
            pytest.skip("needs root and setpriv to become somebody else")
        folder = Path("/tmp") / f"secondtake-traced-{os.getpid()}"
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
        try:
            tracer = traced(folder / "log", cwd=folder)
            # The person's interpreter may lie in a home that others cannot enter: the system's does here.
            prefix = ("/usr/bin/python3", *tracer.prefix[1:3], str(shutil.copy(tracer.prefix[3], folder / "under.py")), *tracer.prefix[4:])
            somebody = ["setpriv", "--reuid", "65534", "--clear-groups", *prefix, "sh", "-c", "id -u >me; exit 6"]
            assert subprocess.run(somebody, cwd=folder).returncode == 6
            assert (folder / "me").read_text() == "65534\n"
            assert (folder / "log").stat().st_uid == 65534
            assert [one.argv[0] for one in tracer.commands()] == ["sh", "id"]
        finally:
            shutil.rmtree(folder)

    def test_inside_a_seal_the_commands_are_seen_and_what_is_left_is_ended(self, tmp_path: Path) -> None:
        """D-11 within D6: the seal's words stand first; process numbers are those inside."""
        for name in ("run", "trace", "workspace"):
            (tmp_path / name).mkdir()
        workspace, tracer = tmp_path / "workspace", traced(tmp_path / "trace/log", cwd=tmp_path / "workspace")
        binds = (Bind(tmp_path / "trace", tmp_path / "trace"), Bind(workspace, workspace))
        program = "import os, subprocess; subprocess.Popen(['sleep', '3600']); os._exit(5)"

        async def take() -> tuple[Tier, Finished]:
            server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
            async with (
                server,
                sealed(
                    run_dir=tmp_path / "run",
                    proxy_port=server.sockets[0].getsockname()[1],
                    credential=None,
                    wanted=Wanted.AUTO,
                    binds=binds,
                    cwd=workspace,
                    readable=(UNDER.parent,),
                    now_us=lambda: 0,
                ) as seal,
            ):
                agent = (*seal.prefix, *tracer.prefix, sys.executable, "-I", "-S", "-c", program)
                environment = {**os.environ, **seal.environment}
                return seal.tier, await launch(agent, env=environment, cwd=workspace, aside=str(tracer.log))

        tier, finished = asyncio.run(take())
        if tier not in {Tier.SEALED, Tier.SEALED_ROOT}:
            pytest.skip(f"no namespaces here: {tier}")
        assert (finished.status, finished.strays, finished.left) == (5, 1, 0)
        seen = tracer.result()
        assert (seen.source, seen.reason) == (Source.KERNEL, "")
        assert [one.argv[0] for one in seen.commands] == [sys.executable, "sleep"]
        assert seen.commands[0].pid < 100

    def test_five_hundred_commands_are_all_seen(self, tmp_path: Path) -> None:
        """D-11. What that costs is measured in docs/commands.md, not here."""
        tracer = traced(tmp_path / "log", cwd=tmp_path)
        run(tracer, "sh", "-c", "i=0; while [ $i -lt 500 ]; do /bin/true $i; i=$((i+1)); done", cwd=tmp_path)
        assert [one.argv[1] for one in tracer.commands()[1:]] == [str(number) for number in range(500)]
        assert {one.exit_code for one in tracer.commands()} == {0}


class TestRefused:
    @needs_strace
    def test_under_another_tracer_the_agent_runs_and_the_reason_is_told(self, tmp_path: Path) -> None:
        """D-12: a traced tree cannot be traced again."""
        tracer = traced(tmp_path / "log", cwd=tmp_path)
        assert STRACE is not None
        outside = [STRACE, "-f", "-qq", "-o", os.devnull, "-e", "trace=none", *tracer.prefix, "sh", "-c", "exit 3"]
        assert subprocess.run(outside, cwd=tmp_path, timeout=60).returncode == 3
        seen = tracer.result()
        assert (seen.source, seen.commands) == (Source.TRAFFIC, ())
        assert "not permitted" in seen.reason

    def test_without_the_tracer_the_agent_runs_and_the_reason_is_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """D-12: `commands: from model traffic only`."""
        monkeypatch.setenv("PATH", str(tmp_path))
        tracer = traced(tmp_path / "log", cwd=tmp_path)
        assert (tracer.prefix, tracer.commands()) == ((), ())
        assert (tracer.result().source, tracer.result().reason) == (Source.TRAFFIC, "strace is not installed")
        monkeypatch.setattr("sys.platform", "darwin")
        assert traced(tmp_path / "log", strace="/bin/true").refused == "commands are traced on Linux only, not on darwin"

    def test_a_log_that_is_missing_empty_or_a_link_is_a_reason(self, tmp_path: Path) -> None:
        """The agent's user may do anything to it."""
        tracer = traced(tmp_path / "log", strace="/bin/true")
        assert tracer.result().reason == "the tracer's log cannot be read: No such file or directory"
        (tmp_path / "log").write_bytes(b"nonsense\n" * 3)
        assert (tracer.result().reason, tracer.result().lost) == ("the tracer saw nothing", 3)
        (tmp_path / "log").unlink()
        (tmp_path / "log").symlink_to("/etc/passwd")
        assert tracer.result().reason.startswith("the tracer's log cannot be read")

    def test_a_line_without_end_is_left_out(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """SECURITY B-11."""
        monkeypatch.setattr("secondtake.harness.tracing.EXEC_TRACE_LINE_BYTES", 100)
        line = b'1 1.000000 execve("/a", ["%s"], 0x7f) = 0\n'
        (tmp_path / "log").write_bytes(line % b"a" + line % (b"b" * 1000) + line % b"c")
        seen = traced(tmp_path / "log", strace="/bin/true").result()
        assert ([one.argv[0] for one in seen.commands], seen.lost) == (["a", "c"], 1)
        monkeypatch.setattr("secondtake.harness.tracing.EXEC_TRACE_BYTES", 10)
        assert len(traced(tmp_path / "log", strace="/bin/true").commands()) == 1
