"""Proxies that stay, shells that point at them, signals, and a recorder that is killed."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
from pathlib import Path

from tests.tools.scene import PATIENCE_S, SECONDTAKE, Scene, offline, shell, tool
from tests.tools.servers import Origin, tunnels

HOST = "files.example"
URL = f"https://{HOST}"
PROGRAM = shlex.join(SECONDTAKE)

AGENT = r"""
import json, pathlib, subprocess, sys, urllib.request
seen = subprocess.run("env | sort", shell=True, capture_output=True, text=True).stdout
result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": seen}
body = {"model": "any-20260101", "max_tokens": 64, "messages": [{"role": "user", "content": [result]}]}
request = urllib.request.Request(sys.argv[1] + "/v1/messages", json.dumps(body).encode(), {"Content-Type": "application/json"})
print(urllib.request.urlopen(request).read().decode())
pathlib.Path(sys.argv[2]).write_text(seen)
"""
"""An agent whose tool call shows it its whole environment, which it then sends to its provider."""


def test_an_agent_that_looks_at_its_environment_is_answered_in_replay(local: Scene, served: Origin) -> None:
    """T-R13: `env | sort` holds our port and our bundle's path, other ones each time."""
    env = local.environment()
    agent = ("python3", "-c", AGENT, URL)
    kept = [str(local.root / f"env-{number}") for number in range(2)]
    recorded = local.run("record", "--json", *served.route(HOST), "look", "--", *agent, kept[0], env=env)
    assert recorded.clean()["exchanges"] == {"model": 1}
    replayed = local.run("replay", "--json", "look", "--", *agent, kept[1], env=env).clean()
    assert replayed["answered"]["normalised"] == 1
    shown = [Path(path).read_text() for path in kept]
    assert shown[0] != shown[1]
    assert "127.0.0.1:" in shown[0]


def test_a_proxy_in_a_shell_that_points_at_one_goes_out_as_the_shell_did_before(local: Scene, served: Origin) -> None:
    """T-R12: `eval "$(secondtake env)"`, then `secondtake proxy` there: not through the first or itself, but the former proxy."""
    curl = tool("curl")
    with tunnels(served.port) as former:
        local.extra |= {"HTTPS_PROXY": former.url, "https_proxy": former.url}
        with local.proxy("record", "first") as first:
            assert first.tool(curl, "-sS", f"{URL}/1").out == "/1\n"
            assert former.asked == [f"{HOST}:443"]
            port = first.ready["port"]
            start = f'eval "$({PROGRAM} env --port {port})"; exec {PROGRAM} proxy record --json '
            with local.proxy_by(shell(start + "second")) as second:
                assert second.tool(curl, "-sS", f"{URL}/2").out == "/2\n"
                second.stop().clean()
            assert former.asked == [f"{HOST}:443"] * 2
            assert first.stop().clean()["exchanges"] == {"web": 1}
        # A shell outlives its proxy: the next one, on the same port, would be told to go through itself.
        pointed = first.ready["environment"]
        local.extra |= pointed
        with local.proxy("record", "third", "--port", str(port)) as third:
            assert third.tool(curl, "-sS", f"{URL}/3").out == "/3\n"
            third.stop().clean()
        assert former.asked == [f"{HOST}:443"] * 3
        assert local.rows("third")[0]["url"] == f"{URL}/3"


def test_env_points_a_shell_at_the_proxy_and_takes_it_back(local: Scene, served: Origin) -> None:
    """README: `eval "$(secondtake env)"` in another shell; its requests are recorded; `--unset` leaves the shell as it was."""
    curl = tool("curl")
    script = (
        f'env | sort > before; eval "$({PROGRAM} env)"; {curl} -sS {URL}/hello; eval "$({PROGRAM} env --unset)"; env | sort > after; '
        "diff before after"
    )
    with local.proxy("record", "shell", *served.route(HOST)) as proxy:
        done = subprocess.run(
            shell(script), env=local.environment(), cwd=local.workspace(), capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert (done.returncode, done.stdout) == (0, "/hello\n"), done.stderr
        assert proxy.stop().clean()["exchanges"] == {"web": 1}


def test_an_interrupt_ends_a_recording_in_order(local: Scene, served: Origin) -> None:
    """`proxy record` ends with SIGINT, SIGTERM or SIGHUP; what was recorded is closed, whole, and replays."""
    curl = tool("curl")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with local.proxy("record", number.name, *served.route(HOST)) as proxy:
            proxy.tool(curl, "-sS", f"{URL}/hello")
            assert proxy.stop(number).clean()["root"]
        assert local.run("verify", number.name).code == 0
    assert local.replay("SIGINT", curl, "-sS", f"{URL}/hello").clean()["answered"]["exact"] == 1
    states = [json.loads(line)["state"] for line in local.run("ls", "--json").out.splitlines()]
    assert states == ["closed"] * 3


def test_a_hangup_begins_the_replay_anew(local: Scene, served: Origin) -> None:
    """T-R14: what cannot be asked twice is exhausted, and after SIGHUP it is there again."""
    post = (tool("curl"), "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--data", "x=1", f"{URL}/form")
    local.record("post", *post, options=served.route(HOST)).clean()
    with local.proxy("replay", "post", before=offline()) as proxy:
        assert [proxy.tool(*post).out for _ in range(2)] == ["200", "424"]
        proxy.process.send_signal(signal.SIGHUP)
        assert [proxy.tool(*post).out for _ in range(2)] == ["200", "424"]
        done = proxy.stop()
        assert done.code == 103
        assert done.kinds() == ["exhausted", "exhausted"]


def test_a_killed_recorder_leaves_all_that_was_acknowledged(local: Scene, served: Origin) -> None:
    """T-L1 with a real agent: SIGKILL in the middle; the agent ends too, and what it was given is replayed."""
    curl = tool("curl")
    loop = f"n=0; while :; do n=$((n+1)); {curl} -sS -o /dev/null -w '%{{http_code}} %{{url}}\\n' {URL}/page/$n; done"
    recorder = subprocess.Popen(
        [*SECONDTAKE, "record", "--json", *served.route(HOST), "killed", "--", "sh", "-c", loop],
        env=local.environment(),
        cwd=local.workspace(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    with recorder:
        assert recorder.stderr is not None
        said = [recorder.stderr.readline() for _ in range(15)]
        recorder.kill()
        # Ends only when nobody of the agent's tree holds it open any more.
        said += recorder.stderr.read().splitlines()
    given = [line.split()[1] for line in said if line.startswith("200 ")]
    assert len(given) >= 15
    listed = json.loads(local.run("ls", "--json").out.splitlines()[0])
    assert (listed["name"], listed["state"]) == ("killed", "died")
    replayed = local.replay("killed", *shell("\n".join(f"{curl} -sS {url}" for url in given)))
    result = replayed.result
    assert result["answered"]["exact"] == result["requests"] == len(given)
    assert replayed.said.split()[: len(given)] == [url.removeprefix(URL) for url in given]
