"""Package indexes and version control by the shape of the protocol."""

from __future__ import annotations

import pytest

from secondtake.cassettes.exchange import Request
from secondtake.cassettes.indexes import Kind, index_path, index_request, is_vcs, normal_name
from secondtake.cassettes.memory import fields


def ask(path: str, *head: str, method: str = "GET") -> Request:
    return Request(method, "https", "h.example", 443, path.encode(), fields=fields(*head))


@pytest.mark.parametrize(
    ("path", "kind", "family", "project"),
    [
        ("/simple/requests/", Kind.PAGE, "python", "requests"),
        ("/repo/proxy/simple/Zope.Interface/", Kind.PAGE, "python", "zope-interface"),
        ("/simple/", Kind.SERVICE, "python", ""),
        ("/packages/aa/bb/cc/demo_pkg-1.0-py3-none-any.whl", Kind.FILE, "python", "demo-pkg"),
        ("/x/demo-1.0-1-cp312-cp312-manylinux_2_17_x86_64.whl.metadata", Kind.FILE, "python", "demo"),
        ("/packages/aa/bb/demo-1.0rc1.tar.gz", Kind.FILE, "python", "demo"),
        ("/packages/demo_a-b-1.0.zip.metadata", Kind.FILE, "python", "demo-a-b"),
        ("/pypi/demo/json", Kind.PAGE, "python", "demo"),
        ("/pypi/demo/1.0/json", Kind.PAGE, "python", "demo"),
        ("/lodash/-/lodash-4.17.21.tgz", Kind.FILE, "npm", "lodash"),
        ("/@babel/core/-/core-7.0.0.tgz", Kind.FILE, "npm", "@babel/core"),
        ("/@babel%2fcore/-/core-7.0.0.tgz", Kind.FILE, "npm", "@babel/core"),
        ("/npm/api/@s/n/-/@s/n-1.0.0.tgz", Kind.FILE, "npm", "@s/n"),
        ("/-/npm/v1/security/advisories/bulk", Kind.SERVICE, "npm", ""),
        ("/api/v1/crates/serde/1.0.0/download", Kind.FILE, "cargo", "serde"),
        ("/crates/serde_json/serde_json-1.0.0.crate", Kind.FILE, "cargo", "serde-json"),
        ("/github.com/pkg/errors/@v/list", Kind.PAGE, "go", "github.com/pkg/errors".replace(".", "-")),
        ("/github.com/!burnt!sushi/toml/@v/v1.0.0.zip", Kind.FILE, "go", "github-com/!burnt!sushi/toml"),
        ("/golang.org/x/text/@latest", Kind.PAGE, "go", "golang-org/x/text"),
        ("/sumdb/sum.golang.org/lookup/golang.org/x/text@v0.3.0", Kind.SERVICE, "go", ""),
        ("/debian/dists/bookworm/InRelease", Kind.PAGE, "debian", ""),
        ("/debian/pool/main/c/curl/curl_7.88_amd64.deb", Kind.FILE, "debian", ""),
        ("/gems/rails-7.0.0.gem", Kind.FILE, "ruby", "rails"),
        ("/maven2/org/x/demo/maven-metadata.xml", Kind.PAGE, "maven", "demo"),
        ("/maven2/org/x/demo/1.0/demo-1.0.jar", Kind.FILE, "maven", "demo"),
        ("/v3-flatcontainer/demo/index.json", Kind.PAGE, "nuget", "demo"),
        ("/p2/acme/demo~dev.json", Kind.PAGE, "composer", "acme/demo"),
        ("/conda/linux-64/repodata.json.zst", Kind.PAGE, "conda", ""),
    ],
)
def test_paths_of_indexes_are_told_by_shape(path: str, kind: Kind, family: str, project: str) -> None:
    """T-N8: never by host."""
    found = index_path(path.encode())
    assert found is not None
    assert (found.kind, found.family, found.project) == (kind, family, project)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/index.html",
        "/r/123",
        "/simple",
        "/simplest/x/",
        "/a.tar.gz",
        "/users/@me",
        "/v1/messages",
        "/ab/cd/ef",
        "/api/v1/items.json",
        "/info/x",
    ],
)
def test_other_paths_are_not(path: str) -> None:
    """DESIGN 3: a wrong index label changes what a miss looks like."""
    assert index_path(path.encode()) is None


@pytest.mark.parametrize(
    ("request_", "kind", "project"),
    [
        (ask("/lodash", "npm-command: install", "Accept: application/json"), Kind.PAGE, "lodash"),
        (ask("/@s%2fn", "pacote-req-type: packument"), Kind.PAGE, "@s/n"),
        (ask("/lodash", "Accept: application/vnd.npm.install-v1+json; q=1.0, */*"), Kind.PAGE, "lodash"),
        (ask("/lodash/-/lodash-1.0.0.tgz", "npm-command: install"), Kind.FILE, "lodash"),
        (ask("/root/pypi/+simple/demo", "Accept: application/vnd.pypi.simple.v1+json"), Kind.PAGE, "demo"),
        (ask("/se/rd/serde", "cargo-protocol: version=1"), Kind.PAGE, "serde"),
        (ask("/index/3/s/syn", "User-Agent: cargo/1.95.0"), Kind.PAGE, "syn"),
        (ask("/config.json", "User-Agent: cargo 1.95.0"), Kind.SERVICE, ""),
    ],
)
def test_fields_of_a_protocol_tell_where_the_path_does_not(request_: Request, kind: Kind, project: str) -> None:
    """T-N8."""
    found = index_request(request_)
    assert found is not None
    assert (found.kind, found.project) == (kind, project)


def test_two_short_folders_alone_are_no_cargo_index() -> None:
    """DESIGN 3."""
    assert index_request(ask("/se/rd/serde")) is None


@pytest.mark.parametrize(
    "request_",
    [
        ask("/o/r.git/info/refs?service=git-upload-pack"),
        ask("/o/r/info/refs?service=git-receive-pack"),
        ask("/o/r.git/info/refs"),
        ask("/o/r.git/git-upload-pack", method="POST"),
        ask("/o/r.git/info/lfs/objects/batch", method="POST"),
        ask("/objects/abc", "Accept: application/vnd.git-lfs"),
        ask("/o/r.git/objects/pack/pack-" + "a" * 40 + ".pack"),
        ask("/o/r.git/objects/aa/" + "b" * 38),
    ],
)
def test_git_is_told_by_its_paths(request_: Request) -> None:
    """T-N8, T-R7."""
    assert is_vcs(request_)


@pytest.mark.parametrize("path", ["/info/refs?x=1", "/objects/list", "/git-upload-packs", "/r"])
def test_other_requests_are_not_git(path: str) -> None:
    """T-R7."""
    assert not is_vcs(ask(path))


def test_names_have_one_form() -> None:
    """PEP 503."""
    assert normal_name(b"Zope.__Interface") == "zope-interface"
    assert normal_name(b"%40Scope%2Fx") == "@scope/x"


def test_a_hostile_path_costs_little() -> None:
    """B-11: no pattern runs away."""
    for path in (
        b"/packages/" + b"a-" * 2000 + b".tar.gz",
        b"/" + b"a/" * 2000 + b"@v/x.zip",
        b"/x" * 50_000,
        b"/" + b"-" * 4000 + b".whl",
    ):
        index_path(path)
