"""What the tools' own configuration files say about certificates and proxies."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from secondtake.proxy.configs import Configs, Setting, Tool, read_configs


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def configs(home: Path, environ: dict[str, str] | None = None, cwd: Path | None = None) -> Configs:
    return read_configs(environ or {}, home, cwd or home, root=home)


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def paths(found: Configs) -> list[str]:
    return [setting.value for setting in found.certificates]


def test_nothing_configured_is_nothing_found(home: Path) -> None:
    """DESIGN 3: no file is no warning."""
    assert configs(home) == Configs()


@pytest.mark.parametrize("place", [".config/pip/pip.conf", ".pip/pip.conf", "etc/pip.conf", "etc/xdg/pip/pip.conf"])
def test_pip(place: str, home: Path) -> None:
    """DESIGN 3: pip configuration; pip's "Configuration files"."""
    file = put(home / place, "[global]\ncert = ~/corp.pem\n[install]\nproxy = http://user:s3cret@proxy.example:3128\ncert=/abs.pem\n")
    found = configs(home)
    assert paths(found) == [f"{home}/corp.pem", "/abs.pem"]
    assert found.proxies == (Setting(Tool.PIP, file, "proxy", "http://user:s3cret@proxy.example:3128"),)
    assert found.overriding == {Tool.PIP}


def test_pip_files_named_by_variables(home: Path) -> None:
    """pip: PIP_CONFIG_FILE, VIRTUAL_ENV, XDG_CONFIG_HOME; the null device means none of the user's."""
    put(home / "x/pip/pip.conf", "[global]\ncert=/xdg.pem")
    put(home / "venv/pip.conf", "[global]\ncert=/venv.pem")
    put(home / "my.conf", "[global]\ncert=/named.pem")
    environ = {"XDG_CONFIG_HOME": f"{home}/x", "VIRTUAL_ENV": f"{home}/venv", "PIP_CONFIG_FILE": "~/my.conf"}
    assert paths(configs(home, environ)) == ["/xdg.pem", "/venv.pem", "/named.pem"]
    assert paths(configs(home, {**environ, "PIP_CONFIG_FILE": os.devnull})) == []


def test_npm(home: Path) -> None:
    """DESIGN 3: npm configuration: `cafile`, `ca` with its line breaks written out, `ca[]`, `${VARIABLE}`, project file too."""
    pem = "-----BEGIN CERTIFICATE-----\\nAAAA\\n-----END CERTIFICATE-----"
    put(home / ".npmrc", f'; comment\ncafile = ${{CORP}}/ca.pem\nca="{pem}"\nca[]={pem}\nhttps-proxy=http://proxy.example:1\n')
    put(home / "project/.npmrc", "cafile=certs/project.pem\nproxy = null\n//registry.example/:_authToken=abc\n")
    found = configs(home, {"CORP": "/corp"}, home / "project")
    assert paths(found) == ["/corp/ca.pem", f"{home}/project/certs/project.pem"]
    assert [setting.value for setting in found.inline] == [pem.replace("\\n", "\n")] * 2
    assert found.overriding == {Tool.NPM}
    put(home / "elsewhere", "cafile=/elsewhere.pem")
    assert paths(configs(home, {"npm_config_userconfig": "~/elsewhere"}, home / "other")) == ["/elsewhere.pem"]


def test_git(home: Path) -> None:
    """DESIGN 3: git configuration: `http.sslCAInfo` in all its writings, per URL, included files, and the repository's own."""
    put(
        home / ".gitconfig",
        '[http]\n\tsslCAInfo = ~/corp.pem ; the company\'s\n[http "https://git.example"]\n\tSSLCAINFO = "/per url.pem"\n'
        "[http] sslCAPath = /folder # same line\n[include]\n\tpath = more.inc\n[user]\n\tsslcainfo = /not/http.pem\n",
    )
    put(home / "more.inc", "[HTTP]\nsslcainfo = /inc\\\nluded.pem\nproxy = http://proxy.example:1\n")
    put(home / "work/.git/config", '[remote "origin"]\n\tproxy = http://other.example:1\n\turl = x\n[http]\n\tsslCAInfo = /repo.pem\n')
    put(home / "etc/gitconfig", "[http]\nsslCAInfo=/system.pem")
    found = configs(home, cwd=home / "work")
    assert paths(found) == ["/system.pem", f"{home}/corp.pem", "/per url.pem", "/folder", "/included.pem", "/repo.pem"]
    assert [setting.key for setting in found.proxies] == ["http.proxy", "remote.origin.proxy"]
    assert found.overriding == {Tool.GIT}
    environ = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": f"{home}/more.inc"}
    assert paths(configs(home, environ)) == ["/included.pem"]


def test_git_itself_reads_the_same_values(home: Path) -> None:
    """git-config(1), "Syntax": our reading of quotes, escapes and comments against git's own."""
    lines = [
        "a = plain",
        'a = "with ; and #"',
        "a = x # comment",
        'a = "q\\"uote"',
        "a = tab\\tbed",
        'a = " lead"',
        "a = back\\\\slash",
        'a = m"i d"dle ;c',
    ]
    file = put(home / ".gitconfig", "".join(f"[http]\nsslCAInfo = {line.partition(' = ')[2]}\n" for line in lines))
    asked = subprocess.run(
        ["git", "config", "-z", "-f", str(file), "--get-all", "http.sslCAInfo"], capture_output=True, text=True, check=True
    )
    assert paths(configs(home, cwd=Path("/"))) == [str(Path("/") / value) for value in asked.stdout.split("\0")[:-1]]


def test_cargo(home: Path) -> None:
    """DESIGN 3: cargo configuration: `http.cainfo`, relative to the folder that holds `.cargo`; from here up, then CARGO_HOME."""
    put(home / ".cargo/config.toml", '[http]\ncainfo = "certs/corp.pem"\nproxy = "http://proxy.example:1"\n')
    put(home / "work/.cargo/config", '[http]\ncainfo = "/old.pem"\n')
    put(home / "cargo-home/config.toml", '[http]\ncainfo = "own.pem"\n')
    found = configs(home, {"CARGO_HOME": f"{home}/cargo-home"}, home / "work/deep")
    assert paths(found) == ["/old.pem", f"{home}/certs/corp.pem", f"{home}/own.pem"]
    assert found.overriding == {Tool.CARGO}


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (".config/pip/pip.conf", "no section\n"),
        (".cargo/config.toml", "[http\n"),
        (".config/pip/pip.conf", "[a]\n[a]\nx\n"),
        (".gitconfig", "\udcff"),
    ],
)
def test_a_broken_file_is_a_warning_and_the_rest_is_read(place: str, text: str, home: Path) -> None:
    """DESIGN 3: never an error; the tool itself will say more."""
    (home / place).parent.mkdir(parents=True, exist_ok=True)
    (home / place).write_bytes(text.encode("utf-8", "surrogateescape"))
    put(home / ".npmrc", "cafile=/still.pem")
    found = configs(home)
    assert paths(found) == ["/still.pem"]
    assert len(found.warnings) == 1
    assert place in found.warnings[0]


def test_a_pipe_in_place_of_a_file_does_not_stop_us(home: Path) -> None:
    """Hostile input: opening a pipe would wait for ever."""
    os.mkfifo(home / ".npmrc")
    assert "not a regular file" in configs(home).warnings[0]


def test_a_file_that_includes_itself_ends(home: Path) -> None:
    """git-config(1): includes may form a circle."""
    put(home / ".gitconfig", "[include]\npath = .gitconfig\n[http]\nsslCAInfo = /a.pem\n")
    assert set(paths(configs(home))) == {"/a.pem"}


@given(text=st.text(alphabet="[]\"'\\=;#\n\t hHtTpPcafileoxy.~$%{}", max_size=80))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_no_file_content_raises(text: str, home: Path) -> None:
    """Whatever stands in the files."""
    for place in (".npmrc", ".gitconfig", ".cargo/config.toml", ".config/pip/pip.conf"):
        put(home / place, text)
    configs(home)
