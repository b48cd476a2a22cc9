"""The tools' own configuration files: which certificates they name, and which proxy they would use instead of ours.

pip, npm, git and cargo let a file decide over the environment's `HTTPS_PROXY`; each has a variable of its own that decides over
the file. Reading only: a broken file is a warning, and the tool itself will say more.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

FILE_BYTES = 16 * 1024 * 1024
"""No configuration file or bundle is larger; the largest public bundle is a quarter of a megabyte."""

_INCLUDE_DEPTH = 5
_GIT_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\](.*)', re.DOTALL)


class Tool(StrEnum):
    """Whose configuration is read."""

    PIP = "pip"
    NPM = "npm"
    GIT = "git"
    CARGO = "cargo"


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of a configuration file."""

    tool: Tool
    file: Path
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Configs:
    """What the files say. `inline` are certificates written into a file (`npm ca`)."""

    certificates: tuple[Setting, ...] = ()
    """Paths of files or folders, made absolute."""
    inline: tuple[Setting, ...] = ()
    proxies: tuple[Setting, ...] = ()
    """Proxies that a tool would prefer to the environment's. May hold passwords."""
    warnings: tuple[str, ...] = ()

    @property
    def overriding(self) -> frozenset[Tool]:
        """Tools that would go around us unless told by their own variable."""
        return frozenset(setting.tool for setting in self.proxies)


def read_configs(environ: Mapping[str, str], home: Path, cwd: Path, *, root: Path = Path("/")) -> Configs:
    """Read each tool's files, in the tool's own order."""
    reader = _Reader(environ, home, cwd, root)
    for step in (reader.pip, reader.npm, reader.git, reader.cargo):
        step()
    return Configs(tuple(reader.certificates), tuple(reader.inline), tuple(reader.proxies), tuple(reader.warnings))


def read_file(path: Path) -> bytes:
    """A regular file of a bounded size; a pipe or device is an OSError, never a wait."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(fd, "rb") as file:
        state = os.fstat(fd)
        if stat.S_ISDIR(state.st_mode):
            raise IsADirectoryError(f"a folder: {path}")
        if not stat.S_ISREG(state.st_mode):
            raise OSError(f"not a regular file: {path}")
        data = file.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        raise OSError(f"larger than {FILE_BYTES} bytes: {path}")
    return data


def expand(value: str, home: Path, base: Path) -> Path:
    """A path as these tools write it: `~` is home, a relative one starts at `base`."""
    if value == "~" or value.startswith("~/"):
        return home / value[2:]
    return base / value


class _Reader:
    def __init__(self, environ: Mapping[str, str], home: Path, cwd: Path, root: Path) -> None:
        self.environ, self.home, self.cwd, self.root = environ, home, cwd, root
        self.certificates: list[Setting] = []
        self.inline: list[Setting] = []
        self.proxies: list[Setting] = []
        self.warnings: list[str] = []

    def text(self, path: Path) -> str | None:
        """None where there is no such file; a warning where there is one that cannot be read."""
        try:
            return read_file(path).decode("utf-8-sig")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, UnicodeDecodeError) as error:
            self.warnings.append(f"cannot read {path}: {error}")
            return None

    def pip(self) -> None:
        """pip: "Configuration files" (global, user, site, PIP_CONFIG_FILE); `cert` and `proxy` in any section."""
        xdg = Path(self.environ.get("XDG_CONFIG_HOME") or self.home / ".config")
        files = [self.root / "etc/pip.conf", self.root / "etc/xdg/pip/pip.conf", self.home / ".pip/pip.conf", xdg / "pip/pip.conf"]
        files.append(self.home / "Library/Application Support/pip/pip.conf")
        if venv := self.environ.get("VIRTUAL_ENV"):
            files.append(Path(venv) / "pip.conf")
        if named := self.environ.get("PIP_CONFIG_FILE"):
            files = [] if named == os.devnull else [*files, expand(named, self.home, self.cwd)]
        for file in files:
            if (text := self.text(file)) is None:
                continue
            parser = configparser.RawConfigParser(strict=False)
            try:
                parser.read_string(text, str(file))
            except configparser.Error as error:
                self.warnings.append(f"cannot read {file}: {str(error).splitlines()[0]}")
                continue
            for section in parser.sections():
                if cert := parser.get(section, "cert", fallback=""):
                    self.certificate(Tool.PIP, file, "cert", cert, self.cwd)
                if proxy := parser.get(section, "proxy", fallback=""):
                    self.proxies.append(Setting(Tool.PIP, file, "proxy", proxy))

    def npm(self) -> None:
        """npm: "npmrc" (project, user, global); `cafile`, `ca`, `ca[]`, `proxy`, `https-proxy`, with `${VARIABLE}` replaced."""
        user = self.environ.get("npm_config_userconfig") or self.environ.get("NPM_CONFIG_USERCONFIG")
        everyone = self.environ.get("npm_config_globalconfig") or self.environ.get("NPM_CONFIG_GLOBALCONFIG")
        prefix = self.environ.get("npm_config_prefix") or self.environ.get("NPM_CONFIG_PREFIX") or self.environ.get("PREFIX")
        # The global file lies under npm's prefix, which follows from where node is installed; these are the usual two.
        prefixes = [expand(prefix, self.home, self.cwd)] if prefix else [self.root / "usr", self.root / "usr/local"]
        files = [expand(everyone, self.home, self.cwd)] if everyone else [each / "etc/npmrc" for each in prefixes]
        files += [self.root / "etc/npmrc", expand(user, self.home, self.cwd) if user else self.home / ".npmrc", self.cwd / ".npmrc"]
        for file in dict.fromkeys(files):
            for line in (self.text(file) or "").splitlines():
                if not (match := re.match(r"\s*([A-Za-z-]+)\s*(\[\])?\s*=\s*(.*?)\s*\Z", line)):
                    continue
                key, value = match.group(1), self.npm_value(match.group(3))
                if not value or value in {"null", "false"}:
                    continue
                if key == "cafile":
                    self.certificate(Tool.NPM, file, key, value, self.cwd)
                elif key == "ca":
                    self.inline.append(Setting(Tool.NPM, file, key, value))
                elif key in {"proxy", "https-proxy", "http-proxy"}:
                    self.proxies.append(Setting(Tool.NPM, file, key, value))

    def npm_value(self, value: str) -> str:
        if value.startswith('"'):
            try:
                decoded = json.loads(value)
            except ValueError:
                decoded = value.strip('"').replace("\\n", "\n")
            value = decoded if isinstance(decoded, str) else value
        value = re.sub(r"\$\{([^}]+)\}", lambda match: self.environ.get(match.group(1).rstrip("?"), match.group(0)), value)
        return value.replace("\\n", "\n")

    def git(self) -> None:
        """git-config: system, XDG, `~/.gitconfig`, the repository's; `http.sslCAInfo`, `http.sslCAPath`, `http.proxy`, `remote.*.proxy`."""
        xdg = Path(self.environ.get("XDG_CONFIG_HOME") or self.home / ".config")
        system = self.environ.get("GIT_CONFIG_SYSTEM") or self.root / "etc/gitconfig"
        named = self.environ.get("GIT_CONFIG_GLOBAL")
        files = [] if self.environ.get("GIT_CONFIG_NOSYSTEM") in {"1", "true", "yes"} else [Path(system)]
        files += [Path(named)] if named else [xdg / "git/config", self.home / ".gitconfig"]
        for folder in (self.cwd, *self.cwd.parents):
            if (folder / ".git").is_dir():
                files.append(folder / ".git/config")
                break
        for file in files:
            for origin, section, subsection, key, value in self.git_lines(file, 0):
                if section == "http" and key in {"sslcainfo", "sslcapath"} and value:
                    self.certificate(Tool.GIT, origin, f"http.{key}", value, self.cwd)
                elif key == "proxy" and value and (section == "http" or (section == "remote" and subsection)):
                    name = f"{section}.{subsection}.proxy" if subsection else "http.proxy"
                    self.proxies.append(Setting(Tool.GIT, origin, name, value))

    def git_lines(self, file: Path, depth: int) -> Iterator[tuple[Path, str, str, str, str]]:
        """(file, section, subsection, key in lower case, value). Includes are followed, `includeIf` whatever its condition."""
        text = self.text(file)
        if text is None or depth > _INCLUDE_DEPTH:
            return
        section = subsection = ""
        for raw in text.replace("\\\n", "").splitlines():
            line = raw.strip()
            if header := _GIT_SECTION.match(line):
                section, subsection = header.group(1).lower(), re.sub(r"\\(.)", r"\1", header.group(2) or "")
                line = header.group(3).strip()
            if not line or line[0] in "#;" or not (match := re.match(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?\Z", line)):
                continue
            key, value = match.group(1).lower(), _git_value(match.group(2) or "")
            yield file, section, subsection, key, value
            if section in {"include", "includeif"} and key == "path" and value:
                yield from self.git_lines(expand(value, self.home, file.parent), depth + 1)

    def cargo(self) -> None:
        """The Cargo book, "Configuration": from the current folder up, then CARGO_HOME; `http.cainfo`, `http.proxy`."""
        home = Path(self.environ.get("CARGO_HOME") or self.home / ".cargo")
        folders = [*(folder / ".cargo" for folder in (self.cwd, *self.cwd.parents)), home]
        for folder in dict.fromkeys(folders):
            for file in (folder / "config", folder / "config.toml"):
                if (text := self.text(file)) is None:
                    continue
                try:
                    http = tomllib.loads(text).get("http")
                except (tomllib.TOMLDecodeError, RecursionError) as error:
                    self.warnings.append(f"cannot read {file}: {error}")
                    continue
                if not isinstance(http, dict):
                    continue
                if isinstance(cainfo := http.get("cainfo"), str) and cainfo:
                    self.certificate(Tool.CARGO, file, "http.cainfo", cainfo, folder.parent)
                if isinstance(proxy := http.get("proxy"), str) and proxy:
                    self.proxies.append(Setting(Tool.CARGO, file, "http.proxy", proxy))

    def certificate(self, tool: Tool, file: Path, key: str, value: str, base: Path) -> None:
        self.certificates.append(Setting(tool, file, key, str(expand(value, self.home, base))))


def _git_value(text: str) -> str:
    """Quotes, escapes and comments of git-config's "Syntax"."""
    out: list[str] = []
    quoted = False
    at = 0
    while at < len(text):
        char = text[at]
        if char == '"':
            quoted = not quoted
        elif char == "\\" and at + 1 < len(text):
            at += 1
            out.append({"n": "\n", "t": "\t", "b": "\b"}.get(text[at], text[at]))
        elif char in "#;" and not quoted:
            break
        else:
            out.append(char)
        at += 1
    return "".join(out).rstrip()
