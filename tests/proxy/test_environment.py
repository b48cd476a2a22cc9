"""What a child process is told, and the same as lines for a shell."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.errors import BadInput
from secondtake.proxy.configs import Tool
from secondtake.proxy.environment import (
    TRUST_VARIABLES,
    Block,
    Format,
    block,
    child_environment,
    exports,
    proxy_url,
    unsets,
)
from secondtake.proxy.tools import TOOL_VARIABLES

BUNDLE = Path("/run/user/1000/secondtake/bundle.pem")
CORP = "http://user:pa%40ss@proxy.corp.example:3128"
ODD = [
    "/with space/b.pem",
    "/it's/b.pem",
    '/a"quote/b.pem',
    "/$HOME/`id`/$(id)/${x}.pem",
    "/new\nline/b.pem",
    "/back\\slash\\/b.pem",
    "/hash # not a comment",
    "/ünïcode/😀.pem",
    "-e",
    "",
    "~",
    "*",
    "a;b&c|d<e>f!g",
    "\ttab ",
    "‘curly’",
    "%PATH%",
]


def test_the_whole_block_is_set() -> None:
    """AGENTS 1: one block that covers everything seen: proxy and CA variables for every tool."""
    child = child_environment({"PATH": "/bin", "HOME": "/h"}, port=8080, bundle=BUNDLE)
    assert {child[name] for name in ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy")} == {"http://127.0.0.1:8080"}
    measured = "SSL_CERT_FILE REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS GIT_SSL_CAINFO PIP_CERT npm_config_cafile"
    for name in f"{measured} CARGO_HTTP_CAINFO CODEX_CA_CERTIFICATE AWS_CA_BUNDLE DENO_CERT".split():
        assert child[name] == str(BUNDLE), name
    assert (child["PATH"], child["HOME"]) == ("/bin", "/h")
    assert child["SECONDTAKE_PROXY"] == "http://127.0.0.1:8080"
    assert not {"NODE_USE_ENV_PROXY", "JAVA_TOOL_OPTIONS", "ALL_PROXY"} & child.keys()


def test_every_tool_that_reads_a_variable_has_one_that_is_set() -> None:
    """T-O4: the table and the block agree."""
    for tool in TOOL_VARIABLES.values():
        assert not tool.trusts or set(tool.trusts) & set(TRUST_VARIABLES), tool.name
        assert not set(tool.trusts) & set(tool.ignores), tool.name


def test_exceptions_are_replaced_by_loopback() -> None:
    """DESIGN 3: the child's NO_PROXY/no_proxy is replaced (loopback only)."""
    child = child_environment({"NO_PROXY": "*", "no_proxy": "index.example"}, port=1, bundle=BUNDLE, extra_no_proxy=["db.example"])
    assert child["NO_PROXY"] == child["no_proxy"] == "localhost,127.0.0.1,::1,db.example"


@pytest.mark.parametrize(
    "name",
    [
        *("ALL_PROXY", "all_proxy", "All_Proxy", "PIP_PROXY", "CARGO_HTTP_PROXY", "YARN_HTTPS_PROXY", "GIT_PROXY_COMMAND"),
        *("NPM_CONFIG_HTTPS_PROXY", "npm_config_https_proxy", "npm_config_proxy", "NPM_CONFIG_CAFILE", "npm_config_noproxy"),
    ],
)
def test_what_would_lead_around_us_is_taken_out(name: str) -> None:
    """DESIGN 3: in any case of letters; npm reads its variables in both."""
    base = {name: "http://elsewhere.example:1", "PATH": "/bin"}
    assert name not in child_environment(base, port=1, bundle=BUNDLE)
    assert block(base, port=1, bundle=BUNDLE).unset == (name,)
    assert base[name], "the caller's own mapping is not touched"


def test_a_credential_is_percent_escaped() -> None:
    """DESIGN 3: a user name alone starts a session of its own, `http://agent-2@127.0.0.1:P`."""
    assert proxy_url(8080, credential="agent-2") == "http://agent-2@127.0.0.1:8080"
    assert proxy_url(8080, credential="us er:p@s/s:w#") == "http://us%20er:p%40s%2Fs%3Aw%23@127.0.0.1:8080"
    assert proxy_url(8080, host="::1") == "http://[::1]:8080"


def test_the_former_proxy_is_kept_for_a_shell_and_not_shown_to_an_agent() -> None:
    """T-R12, T-R13: SECONDTAKE_UPSTREAM; a password of the company's proxy in an agent's `env` would be in its prompts."""
    base = {"HTTPS_PROXY": CORP, "HTTP_PROXY": CORP, "SECONDTAKE_UPSTREAM": "stale"}
    assert child_environment(base, port=1, bundle=BUNDLE, former=True)["SECONDTAKE_UPSTREAM"] == CORP
    agent = child_environment(base, port=1, bundle=BUNDLE)
    assert "SECONDTAKE_UPSTREAM" not in agent
    assert not any("corp.example" in value for value in agent.values())


@pytest.mark.parametrize(
    ("tool", "names"),
    [
        (Tool.PIP, ["PIP_PROXY"]),
        (Tool.CARGO, ["CARGO_HTTP_PROXY"]),
        (Tool.NPM, ["npm_config_proxy", "npm_config_https_proxy"]),
        (Tool.GIT, ["GIT_CONFIG_VALUE_0"]),
    ],
)
def test_a_configuration_file_that_names_another_proxy_is_overruled(tool: Tool, names: list[str]) -> None:
    """DESIGN 3: only where there is one, so that the usual environment stays small."""
    child = child_environment({}, port=7, bundle=BUNDLE, overriding=[tool])
    assert {child[name] for name in names} == {"http://127.0.0.1:7"}
    assert not set(names) & child_environment({}, port=7, bundle=BUNDLE).keys()


@pytest.mark.loopback
def test_git_goes_by_the_overruling_variable_and_keeps_the_callers(tmp_path: Path) -> None:
    """git-config(1), GIT_CONFIG_COUNT: read after the files; what the caller set this way stays."""
    (tmp_path / ".gitconfig").write_text("[http]\nproxy = http://proxy.corp.example:3128\n")
    base = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "a.b",
        "GIT_CONFIG_VALUE_0": "c",
    }
    child = child_environment(base, port=7, bundle=BUNDLE, overriding=[Tool.GIT])
    for key, value in (("http.proxy", "http://127.0.0.1:7"), ("a.b", "c")):
        asked = subprocess.run(["git", "config", "--get", key], env=child, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert asked.stdout.strip() == value


def read_back(script: str, names: list[str], shell: list[str], base: dict[str, str] | None = None) -> dict[str, str | None]:
    """What a shell that runs the script would hand to a child."""
    show = "import os, json, sys; print(json.dumps({name: os.environ.get(name) for name in sys.argv[1:]}))"
    command = f"{script}\nexec {shlex.quote(sys.executable)} -SE -c '{show}' {' '.join(names)}"
    run = subprocess.run(
        [*shell, command],
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", **(base or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found: dict[str, str | None] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize("shell", [each for each in ("sh", "bash", "dash", "zsh") if shutil.which(each)])
def test_a_posix_shell_reads_back_every_value(shell: str) -> None:
    """STYLE 4: tests evaluate sh with odd paths: spaces, quotes, dollar, line break."""
    wanted = {f"V{number}": value for number, value in enumerate(ODD)}
    script = exports(Block(wanted, ("GONE",)), Format.SH)
    assert read_back(script, [*wanted, "GONE"], [shell, "-c"], {"GONE": "1", "V0": "old"}) == {**wanted, "GONE": None}
    undone = unsets(wanted, Format.SH, restore={"V0": "before"})
    assert read_back(script + undone, [*wanted], [shell, "-c"]) == {**dict.fromkeys(wanted), "V0": "before"}


@pytest.mark.parametrize("value", ODD)
def test_eval_of_the_output_is_safe(value: str) -> None:
    """`eval "$(secondtake env)"`: a path is never run."""
    script = f"eval \"$(cat <<'SCRIPT_END'\n{exports(Block({'V': value}, ()), Format.SH)}SCRIPT_END\n)\""
    assert read_back(script, ["V"], ["sh", "-c"]) == {"V": value}


def unquote(line: str, doubled: str) -> str:
    """How PowerShell (or, with nothing doubled, nobody) reads `'…'`."""
    body = line[line.index("'") + 1 : -1]
    for quote in doubled:
        body = body.replace(quote * 2, quote)
    return body


@pytest.mark.parametrize("value", ODD)
def test_fish_and_powershell_quote_as_their_manuals_say(value: str) -> None:
    """fish "Quotes": only \\\\ and \\' are escapes. PowerShell about_Quoting_Rules: a quote is doubled, the curly ones too."""
    line = exports(Block({"V": value}, ("GONE",)), Format.FISH).removeprefix("set -e GONE\n")
    assert line.startswith("set -gx V '")
    body = line[len("set -gx V '") : -2]
    out, at = "", 0
    while at < len(body):
        if body[at] == "\\":
            assert body[at + 1] in "\\'"
            at += 1
        else:
            assert body[at] != "'"
        out += body[at]
        at += 1
    assert out == value
    line = exports(Block({"V": value}, ()), Format.POWERSHELL)
    assert line.startswith("${env:V} = '")
    assert unquote(line.rstrip("\n") if not value.endswith("\n") else line[:-1], "'‘’‚‛") == value


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish on PATH")
def test_fish_reads_back_every_value() -> None:
    """DESIGN 7: `env --format fish`."""
    wanted = {f"V{number}": value for number, value in enumerate(ODD)}
    assert read_back(exports(Block(wanted, ()), Format.FISH), list(wanted), ["fish", "-c"]) == wanted


def test_github_keeps_lines_together_and_no_value_ends_early() -> None:
    """GitHub "Workflow commands", multiline strings: a delimiter that is not in the value."""
    value = "one\nSECONDTAKE_EOF\nEVIL=1"
    text = exports(Block({"A": "plain", "V": value}, ("GONE",)), Format.GITHUB)
    assert text == f"GONE=\nA=plain\nV<<SECONDTAKE_EOF_\n{value}\nSECONDTAKE_EOF_\n"


def test_docker_takes_values_as_they_are_and_refuses_a_line_break() -> None:
    """docker run --env-file: no quoting, one line each."""
    assert exports(Block({"V": 'it\'s "$x" # y'}, ("GONE",)), Format.DOCKER) == 'GONE=\nV=it\'s "$x" # y\n'
    with pytest.raises(BadInput, match="V holds a line break"):
        exports(Block({"V": "a\nEVIL=1"}, ()), Format.DOCKER)


@pytest.mark.parametrize("value", ODD)
def test_dotenv_replaces_nothing_inside_a_value(value: str) -> None:
    """Common readers: single quotes are literal; in double quotes \\\\ \\" \\$ \\n are escapes. One line always."""
    text = exports(Block({"V": value}, ()), Format.DOTENV)
    assert text.count("\n") == 1
    body = text[2:-1]
    if body.startswith("'"):
        assert body == f"'{value}'"
    elif body.startswith('"'):
        escapes = {"n": "\n", "r": "\r"}
        out, at = "", 1
        while at < len(body) - 1:
            if body[at] == "\\":
                at += 1
                out += escapes.get(body[at], body[at])
            else:
                assert body[at] not in '"$'
                out += body[at]
            at += 1
        assert out == value
    else:
        assert body == value
        assert value.replace("/", "").replace(".", "").replace("-", "").replace("_", "").isalnum()


@given(st.dictionaries(st.from_regex(r"[A-Z_]{1,6}", fullmatch=True), st.text(max_size=20), max_size=4))
def test_json_holds_every_value(values: dict[str, str]) -> None:
    """DESIGN 7: `--format json`."""
    assert json.loads(exports(Block(values, ("GONE",)), Format.JSON)) == {"set": values, "unset": ["GONE"]}


@pytest.mark.skipif(shutil.which("java") is None, reason="no java on PATH")
def test_java_takes_its_options_when_asked_for(tmp_path: Path) -> None:
    """T-O4: a JVM reads no proxy variable; a path may hold spaces."""
    child = child_environment(
        {"PATH": os.environ["PATH"], "JAVA_TOOL_OPTIONS": "-Da=b"}, port=7, bundle=BUNDLE, java=(tmp_path / "a b.p12", "changeit")
    )
    run = subprocess.run(["java", "-XshowSettings:properties", "-version"], env=child, capture_output=True, text=True, check=False)
    shown = run.stdout + run.stderr
    for name, value in (("a", "b"), ("https.proxyPort", "7"), ("javax.net.ssl.trustStore", f"{tmp_path}/a b.p12")):
        assert f"    {name} = {value}\n" in shown
