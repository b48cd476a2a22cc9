"""What a child process is told: proxy, exceptions and trust, for every tool at once; and the same as lines for a shell.

Which variable each tool reads was measured (`tools.TOOL_VARIABLES`); no single one serves all. What would lead around us is taken
out: `ALL_PROXY`, and `NO_PROXY` but for loopback, which stays direct.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import assert_never
from urllib.parse import quote, urlencode

from secondtake.cassettes.errors import BadInput
from secondtake.proxy.configs import Tool
from secondtake.proxy.upstream import FORMER, OURS, former_value
from secondtake.proxy.variables import (
    BEFORE,
    EXCEPTION_VARIABLES,
    LOOPBACK,
    PROXY_VARIABLES,
    SHADOWING,
    TRUST_VARIABLES,
    UNVERIFIED,
    Block,
    applied,
    restored,
    undo,
)

__all__ = [
    "Block",
    "Format",
    "applied",
    "block",
    "child_environment",
    "exports",
    "proxy_url",
    "restored",
    "undo",
    "unsets",
    "EXCEPTION_VARIABLES",
    "PROXY_VARIABLES",
    "TRUST_VARIABLES",
    "UNVERIFIED",
]


class Format(StrEnum):
    """How `exports` writes."""

    SH = "sh"
    FISH = "fish"
    POWERSHELL = "powershell"
    DOTENV = "dotenv"
    GITHUB = "github"
    DOCKER = "docker"
    JSON = "json"


def proxy_url(port: int, *, host: str = "127.0.0.1", credential: str | None = None) -> str:
    """`http://[user[:secret]@]host:port`; `credential` is `user:secret`, or a user name alone."""
    shown = f"[{host}]" if ":" in host else host
    if not credential:
        return f"http://{shown}:{port}"
    user, colon, secret = credential.partition(":")
    return f"http://{quote(user, safe='')}{colon}{quote(secret, safe='')}@{shown}:{port}"


def block(
    base: Mapping[str, str],
    *,
    port: int,
    bundle: Path,
    credential: str | None = None,
    extra_no_proxy: Iterable[str] = (),
    host: str = "127.0.0.1",
    former: bool = False,
    overriding: Iterable[Tool] = (),
    node: bool = False,
    java: tuple[Path, str] | None = None,
) -> Block:
    """Compute what differs from `base`.

    `former` keeps the caller's own proxy as `SECONDTAKE_UPSTREAM`: for a shell, where a proxy may be started next; not for an
    agent, which would show it in `env`. `overriding` are the tools whose configuration file names another proxy
    (`TrustSources.configs.overriding`). `node` has plain Node scripts (22.21 and later) use the proxy too; off, since Node 22 then
    warns on the standard error of every child. `java` is a PKCS#12 trust store and its password; off, since every JVM then prints
    a line that the agent sees.
    """
    # In a shell that points at us already, what counts is what was there before.
    clean = applied(undo(base), base)
    url = proxy_url(port, host=host, credential=credential)
    exceptions = ",".join(dict.fromkeys((*LOOPBACK, *extra_no_proxy)))
    wanted = dict.fromkeys(PROXY_VARIABLES, url)
    wanted |= dict.fromkeys(EXCEPTION_VARIABLES, exceptions)
    wanted |= dict.fromkeys(TRUST_VARIABLES, str(bundle))
    wanted[OURS] = url
    if former and (value := former_value(clean)):
        wanted[FORMER] = value
    for tool in sorted(set(overriding)):
        wanted |= _over_the_file(tool, clean, url, exceptions)
    if node:
        wanted["NODE_USE_ENV_PROXY"] = "1"
    if java is not None:
        wanted["JAVA_TOOL_OPTIONS"] = _java_options(clean.get("JAVA_TOOL_OPTIONS", ""), host, port, *java)
    shadowing = {name.upper() for name in SHADOWING}
    gone = {name for name in clean if name not in wanted and (name.upper() in shadowing or name in {FORMER, BEFORE})}
    if former and (replaced := {name: clean[name] for name in sorted((gone | wanted.keys()) & clean.keys())}):
        wanted[BEFORE] = urlencode(replaced, errors="surrogateescape")
    kept = {name: value for name, value in clean.items() if name not in gone} | wanted
    changed = {name: value for name, value in kept.items() if name in wanted or base.get(name) != value}
    return Block(changed, tuple(sorted(base.keys() - kept.keys())))


def child_environment(
    base: Mapping[str, str],
    *,
    port: int,
    bundle: Path,
    credential: str | None = None,
    extra_no_proxy: Iterable[str] = (),
    host: str = "127.0.0.1",
    former: bool = False,
    overriding: Iterable[Tool] = (),
    node: bool = False,
    java: tuple[Path, str] | None = None,
) -> dict[str, str]:
    """The whole environment of a child: `base` with `block` applied."""
    change = block(
        base,
        port=port,
        bundle=bundle,
        credential=credential,
        extra_no_proxy=extra_no_proxy,
        host=host,
        former=former,
        overriding=overriding,
        node=node,
        java=java,
    )
    return applied(change, base)


def exports(change: Block, form: Format) -> str:
    """The block as text that `form` reads back to the same values; ends in a newline.

    Raises:
        BadInput: the format has no way to write a value (a newline in a Docker environment file).
    """
    if form is Format.JSON:
        return json.dumps({"set": dict(sorted(change.set.items())), "unset": list(change.unset)}, ensure_ascii=True) + "\n"
    lines = [_unset_line(name, form) for name in change.unset]
    lines += [_set_line(name, value, form) for name, value in sorted(change.set.items())]
    return "".join(f"{line}\n" for line in lines if line)


def unsets(names: Iterable[str], form: Format, *, restore: Mapping[str, str] | None = None) -> str:
    """Lines that undo `exports` of these names; `restore` are the values to set instead (the former proxy)."""
    kept = restore or {}
    return exports(Block(dict(kept), tuple(sorted(set(names) - kept.keys()))), form)


def _over_the_file(tool: Tool, base: Mapping[str, str], url: str, exceptions: str) -> dict[str, str]:
    """The tool's own variable, which decides over its configuration file."""
    match tool:
        case Tool.PIP:
            return {"PIP_PROXY": url}
        case Tool.CARGO:
            return {"CARGO_HTTP_PROXY": url}
        case Tool.NPM:
            return {"npm_config_proxy": url, "npm_config_https_proxy": url, "npm_config_noproxy": exceptions}
        case Tool.GIT:
            # git-config(1), GIT_CONFIG_COUNT: read last, so it decides over files; appended to what the caller set this way.
            given = base.get("GIT_CONFIG_COUNT", "")
            count = int(given) if given.isdecimal() and len(given) < 6 else 0
            return {"GIT_CONFIG_COUNT": str(count + 1), f"GIT_CONFIG_KEY_{count}": "http.proxy", f"GIT_CONFIG_VALUE_{count}": url}
        case _:
            assert_never(tool)


def _java_options(before: str, host: str, port: int, store: Path, password: str) -> str:
    """System properties (Java's "Networking Properties" and "JSSE Reference Guide"); in quotes, since a path may hold spaces."""
    properties = {
        "http.proxyHost": host,
        "http.proxyPort": str(port),
        "https.proxyHost": host,
        "https.proxyPort": str(port),
        "http.nonProxyHosts": "localhost|127.*|[::1]",
        "javax.net.ssl.trustStore": str(store),
        "javax.net.ssl.trustStorePassword": password,
        "javax.net.ssl.trustStoreType": "PKCS12",
    }
    return " ".join(filter(None, [before, *(f'"-D{name}={value}"' for name, value in properties.items())]))


def _set_line(name: str, value: str, form: Format) -> str:
    match form:
        case Format.SH:
            return f"export {name}={shlex.quote(value)}"
        case Format.FISH:
            # In single quotes fish knows two escapes only: \' and \\.
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            return f"set -gx {name} '{escaped}'"
        case Format.POWERSHELL:
            doubled = "".join(char * 2 if char in _POWERSHELL_QUOTES else char for char in value)
            return f"${{env:{name}}} = '{doubled}'"
        case Format.DOTENV:
            return f"{name}={_dotenv(value)}"
        case Format.GITHUB:
            # The file $GITHUB_ENV: a delimiter of our own, so that no value can end it early.
            if "\n" not in value and "\r" not in value:
                return f"{name}={value}"
            mark = "SECONDTAKE_EOF"
            while mark in value:
                mark += "_"
            return f"{name}<<{mark}\n{value}\n{mark}"
        case Format.DOCKER:
            # `docker run --env-file`: everything after the first `=` is the value, quotes included; a line is a line.
            if "\n" in value or "\r" in value:
                raise BadInput(f"{name} holds a line break, which a Docker environment file cannot", hint="use --format json")
            return f"{name}={value}"
        case Format.JSON:
            return ""
        case _:
            assert_never(form)


def _unset_line(name: str, form: Format) -> str:
    match form:
        case Format.SH:
            return f"unset {name}"
        case Format.FISH:
            return f"set -e {name}"
        case Format.POWERSHELL:
            return f"Remove-Item -ErrorAction SilentlyContinue 'Env:{name}'"
        case Format.DOTENV | Format.GITHUB | Format.DOCKER:
            # None of the three can take a variable away; an empty one is as good as none to every tool in the table.
            return f"{name}="
        case Format.JSON:
            return ""
        case _:
            assert_never(form)


_POWERSHELL_QUOTES = "'\u2018\u2019\u201a\u201b"
"""All that PowerShell takes as a single quote."""


def _dotenv(value: str) -> str:
    """Single quotes where they can hold the value: nothing is replaced inside them by any of the common readers."""
    if "'" not in value and "\n" not in value and "\r" not in value:
        return f"'{value}'" if not value.replace("/", "").replace(".", "").replace("-", "").replace("_", "").isalnum() else value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
