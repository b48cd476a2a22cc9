"""Package indexes and version control, recognised by the shape of the protocol: paths, media types, fields of their own. Never by host.

Sources: PEP 503, 691, 658 (Python); the npm registry API and pacote; cargo's registry index and registry web API; the Go
module proxy protocol; Debian repository format; git's gitprotocol-http and the git-lfs batch API.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from secondtake.cassettes.exchange import Fields, Request

PATH_BYTES = 1024
"""A longer path has no shape: no index uses one, and it bounds what the patterns below can cost."""


class Kind(StrEnum):
    """What of an index a path is."""

    PAGE = "page"
    """Says which files a package has."""
    FILE = "file"
    SERVICE = "service"
    """Anything else an index answers: audits, searches, configuration, checksums."""


@dataclass(frozen=True, slots=True)
class IndexPath:
    """A path of a package index. `project` is the package's name as compared (lower-case, `-_.` runs as `-`), empty where it names none."""

    kind: Kind
    family: str
    project: str = ""


def normal_name(name: bytes) -> str:
    """A package's name in the one form that is compared (PEP 503; npm and cargo names differ in it from no other name in use)."""
    text = name.decode("utf-8", "replace").lower().replace("%2f", "/").replace("%40", "@")
    return re.sub(r"[-_.]+", "-", text)


_S = Kind.SERVICE
_P = Kind.PAGE
_F = Kind.FILE

_CARGO_PAGE = rb"(?:/.*)?/(?:1/[\w-]|2/[\w-]{2}|3/[\w-]/[\w-]{3}|(?P<a>[\w-]{2})/(?P<b>[\w-]{2})/(?P=a)(?P=b)[\w-]*)"
_CARGO = re.compile(_CARGO_PAGE)

_SHAPES: tuple[tuple[Kind, str, re.Pattern[bytes]], ...] = tuple(
    (kind, family, re.compile(pattern))
    for kind, family, pattern in (
        # the most common first; each has at most one group: the package's name
        (_F, "python", rb".*/([A-Za-z0-9][\w.]*)(?:-[^/-]+){4,5}\.whl(?:\.metadata|\.asc|\.provenance)?"),
        (_P, "python", rb".*/simple/([A-Za-z0-9][\w.-]*)/"),
        (_S, "python", rb".*/simple/"),
        (_F, "python", rb".*/packages/(?:[^/]+/)*([A-Za-z0-9][\w.-]*?)-v?\d[^/]*\.(?:tar\.gz|tar\.bz2|tgz|zip|egg)(?:\.metadata|\.asc)?"),
        (_P, "python", rb".*/pypi/([A-Za-z0-9][\w.-]*)(?:/[^/]+)?/json/?"),
        (_F, "npm", rb"(?:/.*?)??/((?:(?:@|%40)[^/]+(?:/|%2[fF]))?[^/@]+)/-/(?:@[^/]+/)?[^/]+\.tgz"),
        (_S, "npm", rb".*/-/(?:npm/v1/|v1/search|ping|whoami|package/|all\b).*"),
        (_F, "cargo", rb".*/crates/([\w-]+)/(?:[\w-]+-)?\d[^/]*(?:/download|\.crate)"),
        (_P, "cargo", _CARGO_PAGE),
        (_F, "go", rb"/(?:.*/)?([^/]+\.[^/]+(?:/[^@]+)?)/@v/[^/]+\.(?:zip|mod|info)"),
        (_P, "go", rb"/(?:.*/)?([^/]+\.[^/]+(?:/[^@]+)?)/(?:@v/list|@latest)"),
        (_S, "go", rb"/sumdb/[^/]+/supported|(?:/sumdb/[^/]+)?/(?:lookup/.+@v.+|tile/8/.+)"),
        (_P, "debian", rb".*/dists/.+"),
        (_F, "debian", rb".*/pool/.+\.(?:deb|udeb|dsc|diff\.gz|tar\.\w+)"),
        (_F, "debian", rb".*/([a-z0-9][a-z0-9+.-]+)_[^/_]+_[a-z0-9-]+\.u?deb"),
        (_P, "rpm", rb".*/repodata/(?:repomd\.xml|[0-9a-f]{32,}-[^/]+)"),
        (_F, "rpm", rb".*/([^/]+)-[^-/]+-[^-/]+\.rpm"),
        (_P, "alpine", rb".*/APKINDEX\.tar\.gz"),
        (_F, "ruby", rb".*/gems/([\w.-]+?)-\d[^/]*\.gem"),
        (_P, "ruby", rb".*/(?:specs|latest_specs|prerelease_specs)\.4\.8\.gz"),
        (_P, "maven", rb".*/([^/]+)/maven-metadata\.xml(?:\.\w+)?"),
        (_F, "maven", rb".*/(?P<name>[^/]+)/[^/]+/(?P=name)-[^/]+\.(?:jar|pom|aar|module)(?:\.\w+)?"),
        (_P, "nuget", rb".*/(?:v3/index\.json|v3-flatcontainer/([^/]+)/index\.json|registration[^/]*/([^/]+)/[^/]+\.json)"),
        (_F, "nuget", rb".*\.nupkg"),
        (_P, "conda", rb".*/(?:repodata|current_repodata)\.json(?:\.zst|\.bz2|\.gz)?"),
        (_F, "conda", rb".*/([^/]+)-[^-/]+-[^-/]+\.conda"),
        (_P, "composer", rb".*/p2?/([^/]+/[^/]+?)(?:~dev)?\.json|/packages\.json"),
    )
)

_HINT = re.compile(
    rb"\.(?:whl|metadata|tgz|crate|deb|udeb|dsc|rpm|gem|jar|pom|aar|module|nupkg|conda|zip|egg|gz|bz2|json|zst|xml|mod|info|asc)$"
    rb"|\.provenance$|/simple/|/-/|/@|/dists/|/pool/|/download$|/repodata/|/lookup/|/tile/|/supported$|/packages/|/pypi/"
)
"""Where nothing of this occurs only the cargo layout and the fields are left to look at."""


def index_path(path: bytes) -> IndexPath | None:
    """What of a package index a path (without query) is by its shape alone, or None."""
    return None if len(path) > PATH_BYTES else _index_path(path)


@lru_cache(maxsize=4096)
def _index_path(path: bytes) -> IndexPath | None:
    if _HINT.search(path) is None:
        found = _CARGO.fullmatch(path)
        return None if found is None or path.count(b"/") < 2 else IndexPath(Kind.PAGE, "cargo", normal_name(path.rpartition(b"/")[2]))
    for kind, family, pattern in _SHAPES:
        found = pattern.fullmatch(path)
        if found is not None:
            if pattern.pattern is _CARGO_PAGE:
                return IndexPath(kind, family, normal_name(path.rpartition(b"/")[2]))
            return IndexPath(kind, family, normal_name(next((one for one in found.groups() if one), b"")))
    return None


_ACCEPTS = (b"vnd.pypi.simple", b"vnd.npm.install")
_NPM_FIELDS = (b"npm-", b"paco")
"""How npm's own fields begin: npm-command, npm-session, npm-scope, npm-auth-type, pacote-version, pacote-req-type, pacote-pkg-id."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What the fields of a head say about the protocol, found in one pass."""

    index: str = ""
    """`python`, `npm`, `cargo`, or empty."""
    vcs: bool = False
    mcp: bool = False


_PLAIN = Marks()


def marks(fields: Fields) -> Marks:
    """Look at the fields once. The common head has none of these marks."""
    index, vcs, mcp = "", False, False
    for name, value in fields:
        size = len(name)
        if size in {6, 12}:
            if b"vnd." not in value and b"x-git" not in value and name[:4].lower() not in _NPM_FIELDS:
                continue
            vcs = vcs or b"application/x-git-" in value or b"application/vnd.git-lfs" in value
            if size == 6 and b"vnd.pypi.simple" in value:
                index = "python"
            elif size == 6 and b"vnd.npm.install" in value:
                index = "npm"
        start = name[:4].lower()
        if start in _NPM_FIELDS:
            index = "npm"
        elif (start == b"carg" and name.lower() == b"cargo-protocol") or (start == b"user" and value.startswith((b"cargo/", b"cargo "))):
            index = "cargo"
        elif start == b"mcp-" and name.lower() in (b"mcp-session-id", b"mcp-protocol-version"):
            mcp = True
    return Marks(index, vcs, mcp) if index or vcs or mcp else _PLAIN


def index_request(request: Request, found: Marks | None = None) -> IndexPath | None:
    """What of a package index a request asks for, by path and fields, or None when it is no index request."""
    path = request.path.partition(b"?")[0]
    by_path = index_path(path)
    family = (marks(request.fields) if found is None else found).index
    if family == "npm" and (by_path is None or by_path.family != "npm"):
        return IndexPath(Kind.PAGE, "npm", _last(path, "npm"))
    if family:
        return by_path or (IndexPath(Kind.SERVICE, family) if family == "cargo" else IndexPath(Kind.PAGE, family, _last(path, family)))
    if by_path is not None and by_path.family == "cargo" and by_path.kind is Kind.PAGE:
        return None  # two short folders prove nothing without cargo's own fields
    return by_path


def _last(path: bytes, family: str) -> str:
    steps = [step for step in path.split(b"/") if step]
    if family == "npm" and len(steps) > 1 and steps[-2].startswith((b"@", b"%40")):
        return normal_name(b"/".join(steps[-2:]))
    return normal_name(steps[-1]) if steps else ""


# --- version control


_GIT_RPC = (b"/git-upload-pack", b"/git-receive-pack", b"/git-upload-archive")
_GIT_DUMB = re.compile(
    rb".*/objects/(?:info/(?:packs|alternates|http-alternates)|pack/pack-[0-9a-f]{40,64}\.(?:pack|idx)|[0-9a-f]{2}/[0-9a-f]{38,62})"
)


def is_vcs(request: Request, found: Marks | None = None) -> bool:
    """Whether a request speaks git over HTTP (smart or dumb) or git-lfs."""
    path, _, query = request.path.partition(b"?")
    if path.endswith(b"/info/refs") and (not query or b"service=git-" in query):
        return True
    if path.endswith(_GIT_RPC) or b"/info/lfs/" in path:
        return True
    if b"/objects/" in path and _GIT_DUMB.fullmatch(path):
        return True
    return (marks(request.fields) if found is None else found).vcs


def has_type(fields: Fields, part: bytes) -> bool:
    """Whether Accept or Content-Type of a head mention `part`."""
    return any(part in value and name.lower() in (b"accept", b"content-type") for name, value in fields)
