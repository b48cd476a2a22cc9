"""The house itself: what is packaged, what may be named, which file is tested where, what the dependencies are."""

from __future__ import annotations

import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent
ROOMS = ("cassettes", "proxy", "harness", "cli")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())

WITHOUT_TEST = {
    "cassettes/adapters/base.py": ("tests/cassettes/adapters/contract.py", "the shape of an adapter: the contract tests each one"),
    "cassettes/derived.py": ("tests/cassettes/test_derive.py", "values and field corrections, tested with what derives them"),
    "cassettes/errors.py": ("tests/cassettes/test_store.py", "names only; each is tested where it is raised"),
    "cassettes/exchange.py": ("tests/cassettes/test_layout.py", "values only; the encoding's properties build every one of them"),
    "cassettes/limits.py": ("tests/cassettes/test_content.py", "numbers only; each is tested where it is kept"),
    "cassettes/recoding.py": ("tests/cassettes/test_derive.py", "one way to derive an answer, tested with the others"),
    "cassettes/records.py": ("tests/cassettes/test_recorder.py", "values only; made by the recorder"),
    "cassettes/served.py": ("tests/cassettes/test_player.py", "values only; what goes into the player and comes out"),
    **{
        f"harness/drivers/{name}.py": ("tests/agents/test_task.py", "values only; the agent itself is run, as its registry gives it")
        for name in ("aider", "claude_code", "codex", "gemini", "mini", "opencode", "pi", "qwen")
    },
    "harness/plan.py": ("tests/harness/test_recording.py", "values only"),
    "proxy/arrival.py": ("tests/proxy/test_stream.py", "one request from head to answer is tested through real sockets"),
    "proxy/commands.py": ("tests/proxy/test_handler.py", "values only; the handler carries them out"),
    "proxy/http1_bodies.py": ("tests/proxy/test_stream.py", "tested through real sockets, with bodies and trailers of both sides"),
    "proxy/live.py": ("tests/proxy/test_stream.py", "tested through real sockets, with origins that do their worst"),
    "proxy/local.py": ("tests/proxy/test_refusals.py", "how a refusal is sent, tested with what is said in it"),
    "proxy/outcome.py": ("tests/proxy/test_stream.py", "counts only; compared with the requests that were sent"),
    "proxy/settings.py": ("tests/proxy/test_server.py", "values only"),
}
"""Source files without a test file of their own: where they are tested, and why there."""

LONG: dict[str, str] = {}
"""Modules past 400 lines, and why they were not split."""

STATED_ELSEWHERE = {"mitmproxy-linux": "MIT", "mitmproxy-macos": "MIT", "mitmproxy-rs": "MIT", "mitmproxy-windows": "MIT"}
"""Licences that a distribution's metadata leaves out, read from the project's licence file."""

LICENCES = re.compile(
    r"\b(MIT|BSD|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla Public License 2\.0|Unlicense|0BSD|HPND|Zlib|LGPL"
    r"|GNU Lesser General Public License)\b",
    re.IGNORECASE,
)
"""Licences under which a program that is installed beside its dependencies may be passed on. LGPL: imported, never copied in."""


def tracked(*patterns: str) -> list[str]:
    """Files of the repository that exist, also those not yet committed; ignored ones left out."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return sorted({name for name in listed if name and (ROOT / name).is_file()})


def sources() -> list[str]:
    return [name for name in tracked("*.py") if name.split("/")[0] in ROOMS]


def texts() -> Iterator[tuple[str, str]]:
    for name in tracked():
        try:
            yield name, (ROOT / name).read_text("utf-8")
        except UnicodeDecodeError:
            continue  # recorded samples are bytes; a host name in one would be in its text neighbours too


def pins(lock: str) -> dict[str, Requirement]:
    """Each pinned requirement of a lock file, by name."""
    lines = re.findall(r"^([A-Za-z0-9].*?) \\$", (ROOT / lock).read_text(), re.MULTILINE)
    return {requirement.name: requirement for requirement in map(Requirement, lines)}


def version_of(requirement: Requirement) -> Version:
    (specifier,) = requirement.specifier
    return Version(specifier.version)


def uv() -> str:
    found = os.environ.get("UV") or shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("uv is not on this machine")
    return found


class TestPackages:
    def test_the_package_list_is_the_tree(self) -> None:
        """A folder of Python files in a room is a package, and is listed."""
        folders = {str(Path(name).parent).replace("/", ".") for name in sources()}
        assert {f"secondtake.{folder}" for folder in folders} | {"secondtake"} == set(PROJECT["tool"]["setuptools"]["packages"])
        assert all((ROOT / folder.replace(".", "/") / "__init__.py").is_file() for folder in folders)

    def test_each_room_is_linked_relatively(self) -> None:
        """Type checkers find the package in `.src`, wherever the checkout stands."""
        for room in ROOMS:
            assert (ROOT / ".src/secondtake" / room).readlink() == Path(f"../../{room}")

    def test_the_wheel_holds_the_tree_and_nothing_else(self, wheel: Path) -> None:
        """Every file of a room, data included, is in the wheel under `secondtake/`; no test, no bench."""
        with zipfile.ZipFile(wheel) as archive:
            held = {name for name in archive.namelist() if ".dist-info/" not in name}
        rooms = {f"secondtake/{name}" for name in tracked() if name.split("/")[0] in ROOMS}
        assert held == rooms | {"secondtake/__init__.py", "secondtake/py.typed"}

    @pytest.mark.tools
    def test_the_wheel_runs_in_a_folder_with_rooms_of_its_own(self, wheel: Path, tmp_path: Path) -> None:
        """The program works inside other people's workspaces: their `cli/` and `proxy/` are not ours, even with PYTHONPATH=."""
        env = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH"}}
        venv = tmp_path / "venv"
        subprocess.run([uv(), "venv", "-q", "-p", sys.executable, venv], check=True, env=env)
        python = venv / "bin/python"
        install: list[str | Path] = [uv(), "pip", "install", "-q", "--python", python]
        subprocess.run([*install, "--require-hashes", "-r", ROOT / "requirements.lock"], check=True, env=env)
        subprocess.run([*install, "--no-deps", wheel], check=True, env=env)
        for room in ROOMS:
            (tmp_path / "theirs" / room).mkdir(parents=True)
            (tmp_path / "theirs" / room / "__init__.py").write_text("raise SystemExit('their package was imported')\n")
        secondtake = venv / "bin/secondtake"
        ran = subprocess.run(
            [secondtake, "--version"], cwd=tmp_path / "theirs", env=env | {"PYTHONPATH": "."}, capture_output=True, text=True
        )
        assert (ran.returncode, ran.stderr) == (0, "")
        assert PROJECT["project"]["version"] in ran.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of what git tracks now, built from a copy so that no stale `build/` gets in."""
    source = tmp_path_factory.mktemp("source")
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name)
    for room in ROOMS:
        link = source / ".src/secondtake" / room
        if not link.is_symlink():
            link.symlink_to(f"../../{room}")
    out = tmp_path_factory.mktemp("wheel")
    build = "import sys, setuptools.build_meta as b; b.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, out], cwd=source, check=True, capture_output=True)
    (made,) = out.glob("*.whl")
    return made


class TestNames:
    def test_no_registry_host_is_named(self) -> None:
        """Indexes are recognised by protocol shape; the index is whichever this machine reaches."""
        # Written in parts, so that this file does not hold them.
        hosts = [("py" + "pi", "org"), ("python" + "hosted", "org"), ("npm" + "js", "org"), ("npm" + "js", "com"), ("yarn" + "pkg", "com")]
        hosts += [("deb.deb" + "ian", "org"), ("crates", "i" + "o"), ("ruby" + "gems", "org"), ("proxy.go" + "lang", "org")]
        named = re.compile("|".join(re.escape(f"{name}.{top}") for name, top in hosts))
        assert [name for name, text in texts() if named.search(text)] == []

    def test_no_path_of_one_machine_is_named(self) -> None:
        """Nothing depends on where somebody's checkout stands; tests may use made-up homes as data."""
        path = re.compile(r"(?<![\w.\]/])/(work|root|tmp/v)/(?!\W)")
        homes = re.compile(r"(?<![\w.\]/])/home/[a-z]")
        found = [name for name, text in texts() if path.search(text) and not name.startswith("tests/")]
        found += [name for name, text in texts() if homes.search(text) and not name.startswith(("tests/", "docs/"))]
        assert found == []

    def test_no_module_or_class_has_an_empty_name(self) -> None:
        """A name says what the thing is; these say nothing."""
        empty = re.compile(r"(?i)(utils?|helpers?|manager|handler|info|mock)(\.py)?$")
        theirs = {"proxy/handler.py", "WireHandler"}  # mitmproxy's word for one client connection; ours extends its class
        names = [*sources(), *(node.name for name in sources() for node in ast.walk(parsed(name)) if isinstance(node, ast.ClassDef))]
        assert {name for name in names if empty.search(name)} - theirs == set()

    def test_each_page_of_the_docs_is_reached_from_the_index(self) -> None:
        """A page nobody links is a page nobody mends."""
        index = (ROOT / "docs/index.md").read_text()
        assert [page for page in tracked("docs/*.md") if page != "docs/index.md" and page.removeprefix("docs/") not in index] == []


def parsed(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(), name)


class TestSources:
    def test_each_source_file_has_its_test_file_or_a_reason(self) -> None:
        """Tests mirror the tree: `cassettes/adapters/x.py` is tested by `tests/cassettes/adapters/test_x.py`."""
        without = set()
        for name in sources():
            path = Path(name)
            if path.name != "__init__.py" and not (ROOT / "tests" / path.parent / f"test_{path.stem.removeprefix('_')}.py").is_file():
                without.add(name)
        assert without == set(WITHOUT_TEST)
        assert [test for test, _ in WITHOUT_TEST.values() if not (ROOT / test).is_file()] == []

    def test_a_module_is_under_400_lines_or_has_a_reason(self) -> None:
        """Past 400 lines a module has more than one reason to be."""
        long = {name for name in sources() if (ROOT / name).read_text().count("\n") > 400}
        assert long == set(LONG)

    def test_each_module_says_what_it_is_for(self) -> None:
        """The first line of a module is its one reason to be."""
        silent = [name for name in sources() if not ast.get_docstring(parsed(name)) and (ROOT / name).read_text().strip()]
        assert silent == []

    def test_no_decoded_view_of_a_message_is_read(self) -> None:
        """C-17: `.content`, `.text` and `.json` of a mitmproxy message decode without bound; only raw bytes are read."""
        found = []
        for name in sources():
            tree = parsed(name)
            imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
            imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
            if any(module.split(".")[0] == "mitmproxy" for module in imported):
                decoded = {"content", "text", "json", "get_content", "get_text"}
                ours = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]  # redactor.text(message)
                reads = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr in decoded and node not in ours]
                reads = [
                    node for node in reads if not (isinstance(node.value, ast.Name) and node.value.id in {"self", "live"})
                ]  # values of our own
                found += [f"{name}:{node.lineno} .{node.attr}" for node in reads]
        assert found == []

    def test_cassettes_take_clock_chance_and_environment_as_arguments(self) -> None:
        """What import contracts cannot see: calls on modules that are allowed."""
        banned = {"environ", "environb", "getenv", "urandom", "getrandom", "getpid", "now", "utcnow", "today", "uuid1", "uuid4"}
        found = []
        for name in sources():
            if name.startswith("cassettes/"):
                reads = [node for node in ast.walk(parsed(name)) if isinstance(node, ast.Attribute) and node.attr in banned]
                reads = [node for node in reads if not (isinstance(node.value, ast.Name) and node.value.id == "self")]  # a value's own
                found += [f"{name}:{node.lineno} .{node.attr}" for node in reads]
        assert found == []

    def test_cassettes_import_no_client_or_server(self) -> None:
        """A standard package may hold both: `http` has status codes, which are values, and servers, which are not."""
        banned = {"http.client", "http.server", "urllib.request", "logging.handlers", "concurrent.futures.process"}
        found = []
        for name in sources():
            if name.startswith("cassettes/"):
                tree = parsed(name)
                imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
                froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
                imported |= {name for node in froms for name in [node.module or "", *(f"{node.module}.{a.name}" for a in node.names)]}
                found += [(name, module) for module in imported & banned]
        assert found == []

    def test_our_code_imports_nothing_from_the_bare_package(self) -> None:
        """`secondtake/__init__.py` stays empty of meaning, so that importing a room never imports another."""
        found = [
            f"{name}:{node.lineno}"
            for name in sources()
            for node in ast.walk(parsed(name))
            if (isinstance(node, ast.ImportFrom) and node.module == "secondtake")
            or (isinstance(node, ast.Import) and any(alias.name == "secondtake" for alias in node.names))
        ]
        assert found == []


class TestDependencies:
    def test_the_locks_and_the_constraints_agree(self) -> None:
        """`uv run` takes the versions that the hashes are for."""
        dev, run = pins("requirements-dev.lock"), pins("requirements.lock")
        constraints = {requirement.name: requirement for requirement in map(Requirement, PROJECT["tool"]["uv"]["constraint-dependencies"])}
        assert {name: version_of(pin) for name, pin in dev.items()} == {name: version_of(pin) for name, pin in constraints.items()}
        assert {name: version_of(pin) for name, pin in run.items()}.items() <= {name: version_of(pin) for name, pin in dev.items()}.items()

    def test_each_declared_dependency_is_locked(self) -> None:
        """A dependency added without `.ci/lock` would be unpinned."""
        dev, run = pins("requirements-dev.lock"), pins("requirements.lock")
        for lines, lock in ((PROJECT["project"]["dependencies"], run), (PROJECT["dependency-groups"]["dev"], dev)):
            for declared in map(Requirement, lines):
                assert declared.specifier.contains(version_of(lock[declared.name])), declared

    def test_each_pin_has_a_hash_and_no_address(self) -> None:
        """Any index may serve the files; the hash says whether they are the right ones."""
        for lock in ("requirements.lock", "requirements-dev.lock"):
            text = (ROOT / lock).read_text()
            assert "://" not in text
            for block in re.split(r"\n(?=[a-z0-9])", text):
                assert "--hash=sha256:" in block, block

    def test_what_uv_resolved_here_is_what_is_locked(self) -> None:
        """`uv.lock` is made on each machine and ignored by git; its files are among those whose hashes are kept."""
        if not (ROOT / "uv.lock").is_file():
            pytest.skip("no uv.lock here: the tests were not started by `uv run`")
        resolved = tomllib.loads((ROOT / "uv.lock").read_text())
        locked = (ROOT / "requirements-dev.lock").read_text()
        for package in resolved["package"]:
            for file in [*package.get("wheels", ()), *([package["sdist"]] if "hash" in package.get("sdist", {}) else [])]:
                assert f"--hash={file['hash']}" in locked, package["name"]
        ignored = subprocess.run(["git", "check-ignore", "-q", "uv.lock"], cwd=ROOT, check=False)
        assert ignored.returncode == 0

    @pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
    def test_each_dependency_has_an_allowed_licence(self, lock: str) -> None:
        """What is installed beside us may be used and passed on."""
        doubtful = []
        for name, pin in pins(lock).items():
            if pin.marker is None or pin.marker.evaluate():
                said = importlib.metadata.metadata(name)
                lines = [
                    STATED_ELSEWHERE.get(name, ""),
                    said.get("License-Expression") or "",
                    (said.get("License") or "")[:200],
                    *(said.get_all("Classifier") or []),
                ]
                if not any(LICENCES.search(line) for line in lines if "::" not in line or line.startswith("License")):
                    doubtful.append((name, lines[:2]))
        assert doubtful == []


class TestCommands:
    def test_ci_runs_the_test_command_of_the_readme(self) -> None:
        """What a newcomer types is what guards a change."""
        readme = (ROOT / "README.md").read_text()
        command = re.search(r"&& (uv run pytest[^\n]*)$", readme, re.MULTILINE)
        assert command is not None
        assert command[1] in (ROOT / ".ci/run").read_text().splitlines()

    def test_the_readme_is_two_screens(self) -> None:
        """Who needs more follows a link."""
        assert len((ROOT / "README.md").read_text().splitlines()) <= 110

    def test_the_python_version_is_the_lowest_supported(self) -> None:
        """uv and the person's version switcher take the interpreter that the types are checked for."""
        assert PROJECT["project"]["requires-python"] == f">={(ROOT / '.python-version').read_text().strip()}"
