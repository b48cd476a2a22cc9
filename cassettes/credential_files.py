"""Files that hold credentials by their name: they are never kept. What stands in their place is as long, line by line, and says nothing.

Names of variables and of JSON members stay, so that a program finds what it looks for; no value does, nor a comment.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from secondtake.cassettes.placeholder import placeholder

_NAMES = {
    b".npmrc": "npmrc",
    b".yarnrc": "npmrc",
    b".yarnrc.yml": "npmrc",
    b".netrc": "netrc",
    b"_netrc": "netrc",
    b".pypirc": "pypirc",
    b"auth.json": "auth-json",
    b".credentials.json": "auth-json",
    b"credentials.json": "auth-json",
    b"oauth_creds.json": "auth-json",
    b"application_default_credentials.json": "cloud-profile",
    b"credentials.tfrc.json": "auth-json",
    b".git-credentials": "git-credentials",
    b"kubeconfig": "kubeconfig",
    b".htpasswd": "password-file",
    b".pgpass": "password-file",
    b".my.cnf": "password-file",
    b".boto": "cloud-profile",
    b".s3cfg": "cloud-profile",
    b".databrickscfg": "cloud-profile",
    b".vault-token": "token-file",
    b".terraformrc": "token-file",
    b".envrc": "dotenv",
    b"id_rsa": "ssh-key",
    b"id_dsa": "ssh-key",
    b"id_ecdsa": "ssh-key",
    b"id_ecdsa_sk": "ssh-key",
    b"id_ed25519": "ssh-key",
    b"id_ed25519_sk": "ssh-key",
}
_ENDS = {
    b".env": "dotenv",
    b".kubeconfig": "kubeconfig",
    b".p12": "key-store",
    b".pfx": "key-store",
    b".jks": "key-store",
    b".keystore": "key-store",
    b".ppk": "ssh-key",
}
_PLACES: dict[tuple[bytes, bytes | None], str] = {
    (b".aws", b"config"): "",
    (b".aws", None): "cloud-profile",
    (b".azure", None): "cloud-profile",
    (b".kube", b"config"): "kubeconfig",
    (b".docker", b"config.json"): "docker-config",
    (b".cargo", b"credentials"): "token-file",
    (b".cargo", b"credentials.toml"): "token-file",
    (b".gem", b"credentials"): "token-file",
    (b"gh", b"hosts.yml"): "token-file",
    (b".ssh", b"config"): "",
    (b".ssh", b"known_hosts"): "",
    (b".ssh", b"authorized_keys"): "",
    (b".ssh", None): "ssh-key",
    (b"gcloud", None): "cloud-profile",
}
"""By a folder and a name in it; None: whatever is below that folder. An empty kind: no credentials."""

_HARMLESS = re.compile(rb"(?:^|\.)(?:example|sample|template|tmpl|dist|defaults?|schema|test|ci)$", re.IGNORECASE)
_VARIABLE = re.compile(rb"(\s*(?:export\s+)?[A-Za-z_][A-Za-z0-9_.]*\s*=)(.*)", re.DOTALL)
_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"(\s*:)?', re.DOTALL)
_HOST = re.compile(rb"(?://|machine\s+|@)(?:[^/\s@\"']*@)?((?:[a-z0-9-]+\.)+[a-z]{2,}|localhost)\b", re.IGNORECASE)
_NAME = re.compile(rb"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=", re.MULTILINE)
_SCOPES = 10


@dataclass(frozen=True, slots=True)
class CredentialFile:
    """That a credential was available: where, of what kind, for what. `scope` names hosts or variables, as far as the file says."""

    path: bytes
    kind: str
    scope: str
    size_bytes: int


def kind_of(path: bytes) -> str | None:
    """The kind of credentials a file of that path holds by its name; None for any other file."""
    folder, _, name = path.rpartition(b"/")
    lower = name.lower()
    if lower in _NAMES:
        return _NAMES[lower]
    if lower.startswith(b".env.") or lower.endswith(b".env"):
        return None if _HARMLESS.search(lower.removesuffix(b".env") if lower.endswith(b".env") else lower) else "dotenv"
    for end, of_end in _ENDS.items():
        if lower.endswith(end):
            return of_end
    parts = folder.lower().split(b"/")
    if parts[-1:] and (found := _PLACES.get((parts[-1], lower))) is not None:
        return found or None
    if lower.endswith(b".pub"):
        return None
    return next((kind for part in reversed(parts) if (kind := _PLACES.get((part, None)))), None)


def masked(kind: str, content: bytes) -> bytes:
    """What is kept instead of `content`: as long, with the same line ends. A function of lengths and names only; twice is once."""
    if content.lstrip()[:1] in (b"{", b"["):
        try:
            json.loads(content)
        except (ValueError, RecursionError):
            pass
        else:
            return _STRING.sub(lambda found: _string(kind, found), content)
    lines = content.split(b"\n")
    return b"\n".join(_line(kind, line) for line in lines)


def _string(kind: str, found: re.Match[bytes]) -> bytes:
    if found[2] is not None or not found[1]:
        return found[0]
    return b'"' + placeholder(kind, len(found[1])) + b'"'


def _line(kind: str, line: bytes) -> bytes:
    end = b"\r" if line.endswith(b"\r") else b""
    text = line[: len(line) - len(end)]
    variable = _VARIABLE.fullmatch(text) if kind == "dotenv" else None
    if variable is not None:
        return variable[1] + placeholder(kind, len(variable[2])) + end
    return placeholder(kind, len(text)) + end


def scope_of(kind: str, content: bytes) -> str:
    """For what the credentials are, as far as names say it: variables of a `.env`, hosts of the others."""
    found = _NAME.findall(content) if kind == "dotenv" else _HOST.findall(content)
    names = dict.fromkeys(name.decode("ascii", "replace").lower() if kind != "dotenv" else name.decode("ascii") for name in found)
    listed = list(names)
    return ", ".join(listed[:_SCOPES]) + (f" and {len(listed) - _SCOPES} more" if len(listed) > _SCOPES else "")
