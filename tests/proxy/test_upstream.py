"""The way out: which proxy for which origin."""

from __future__ import annotations

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.proxy.upstream import Exceptions, Unsupported, Upstream, Via, former_value, parse_former, parse_proxy

CORP = "http://proxy.corp.example:3128"


def way(environ: dict[str, str], scheme: str = "https", host: str = "api.provider.example", port: int = 443) -> str | None:
    via = Upstream.from_environ(environ).via(scheme, host, port)
    return None if via is None else str(via)


@pytest.mark.parametrize(
    ("environ", "https", "http"),
    [
        ({}, None, None),
        ({"HTTPS_PROXY": CORP}, CORP, None),
        ({"https_proxy": CORP}, CORP, None),
        ({"HTTP_PROXY": CORP}, None, CORP),
        ({"http_proxy": CORP}, None, CORP),
        ({"ALL_PROXY": CORP}, CORP, CORP),
        ({"all_proxy": CORP, "HTTPS_PROXY": "http://other.example:1"}, "http://other.example:1", CORP),
        ({"https_proxy": CORP, "HTTPS_PROXY": "http://other.example:1"}, CORP, None),
        ({"https_proxy": "", "HTTPS_PROXY": ""}, None, None),
        ({"HTTP_PROXY": CORP, "REQUEST_METHOD": "GET"}, None, None),
        ({"http_proxy": CORP, "REQUEST_METHOD": "GET"}, None, CORP),
        ({"HTTPS_PROXY": f"  {CORP}/  "}, CORP, None),
    ],
)
def test_the_callers_variables_decide_per_scheme(environ: dict[str, str], https: str | None, http: str | None) -> None:
    """DESIGN 3: from the caller's HTTPS_PROXY / HTTP_PROXY / ALL_PROXY, lower case first, as curl and requests do."""
    assert way(environ) == https
    assert way(environ, "http", "index.example", 80) == http


@pytest.mark.parametrize(
    ("exceptions", "host", "port", "direct"),
    [
        ("", "host.example", 443, False),
        ("*", "host.example", 443, True),
        ("a.example,*", "host.example", 443, True),
        ("host.example", "host.example", 443, True),
        ("host.example", "HOST.Example.", 443, True),
        ("HOST.EXAMPLE", "host.example", 443, True),
        ("host.example.", "host.example", 443, True),
        ("host.example", "sub.host.example", 443, True),
        ("host.example", "nothost.example", 443, False),
        (".host.example", "host.example", 443, True),
        (".host.example", "sub.host.example", 443, True),
        (".host.example", "nothost.example", 443, False),
        ("*.host.example", "sub.host.example", 443, True),
        ("host.example:8443", "host.example", 8443, True),
        ("host.example:8443", "host.example", 443, False),
        ("host.example:x", "host.example", 443, False),
        ("10.0.0.0/8", "10.1.2.3", 443, True),
        ("10.0.0.0/8", "11.1.2.3", 443, False),
        ("10.1.2.3/8", "10.9.9.9", 443, True),
        ("10.0.0.0/8", "10.example", 443, False),
        ("10.0.0.0/33", "10.0.0.1", 443, False),
        ("10.1.2.3", "10.1.2.3", 443, True),
        ("10.1.2.3:81", "10.1.2.3", 80, False),
        ("10.1.2.3:81", "10.1.2.3", 81, True),
        ("10.1.2", "10.1.2.3", 80, False),
        ("10.0.0.0/8", "::ffff:10.1.2.3", 443, True),
        ("fd00::/8", "fd00::1", 443, True),
        ("fd00::/8", "[fd00::1]", 443, True),
        ("[fd00::1]", "fd00::1", 443, True),
        ("[fd00::1]:8443", "fd00::1", 8443, True),
        ("[fd00::1]:8443", "fd00::1", 443, False),
        ("fd00::1", "FD00:0::1", 443, True),
        ("a.example  b.example\thost.example", "host.example", 443, True),
        (" a.example , host.example ,, ", "host.example", 443, True),
        ("<local>", "intranet", 443, True),
        ("<local>", "host.example", 443, False),
        ("<local>", "2001:db8::1", 443, False),
        ("localhost", "localhost", 8000, True),
        (".", "host.example", 443, False),
        ("*.", "host.example", 443, False),
        ("]:[", "host.example", 443, False),
    ],
)
def test_no_proxy_as_the_tools_read_it(exceptions: str, host: str, port: int, direct: bool) -> None:
    """DESIGN 3: *its* NO_PROXY decides how the proxy goes out."""
    assert Exceptions.of(exceptions).match(host, port) is direct
    assert (way({"HTTPS_PROXY": CORP, "no_proxy": exceptions}, "https", host, port) is None) is direct


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "app.localhost", "127.1"])
def test_loopback_is_never_asked_of_another_machine(host: str) -> None:
    """DESIGN 3: `--route` to a server on this machine, behind a company's proxy."""
    assert way({"ALL_PROXY": CORP}, "http", host, 8080) is None


@given(st.text(max_size=60), st.text(max_size=30), st.integers(0, 65535))
def test_no_text_in_no_proxy_raises(exceptions: str, host: str, port: int) -> None:
    """A variable anybody may have set to anything."""
    Exceptions.of(exceptions).match(host, port)


@pytest.mark.parametrize(
    ("value", "username", "password"),
    [
        ("http://proxy.example:1", None, None),
        ("http://user@proxy.example:1", b"user", None),
        ("http://user:@proxy.example:1", b"user", b""),
        ("http://user:pa%40ss%3Aw@proxy.example:1", b"user", b"pa@ss:w"),
        ("http://CORP%5Cuser:p%C3%A4ss@proxy.example:1", b"CORP\\user", "päss".encode()),
        ("http://user:p@ss@proxy.example:1", b"user", b"p@ss"),
        ("http://user:p/w#x?y@proxy.example:1", b"user", b"p/w#x?y"),
        ("user:pass@proxy.example:1", b"user", b"pass"),
    ],
)
def test_the_credential_is_decoded_and_offered_as_basic(value: str, username: bytes | None, password: bytes | None) -> None:
    """DESIGN 3: credentials added at CONNECT; RFC 7617."""
    via = parse_proxy(value, "HTTPS_PROXY")
    assert (via.host, via.port, via.username, via.password) == ("proxy.example", 1, username, password)
    if username is None:
        assert via.authorization is None
        assert via.secrets == ()
    else:
        assert via.authorization is not None
        assert base64.b64decode(via.authorization.removeprefix(b"Basic ")) == username + b":" + (password or b"")


def test_the_credential_is_in_no_text_that_is_shown() -> None:
    """DESIGN 3: kept out of the record; and of representations, messages and notes."""
    upstream = Upstream.from_environ({"HTTPS_PROXY": "http://user:s3cret@localhost:8080", "SECONDTAKE_PROXY": "http://localhost:8080"})
    via = parse_proxy("http://user:s3cret@proxy.example:1", "HTTPS_PROXY")
    shown = f"{via} {via!r} {upstream!r} {upstream.notes} {via.explain(407, 'host.example', 443)}"
    assert "s3cret" not in shown
    assert base64.b64encode(b"user:s3cret").decode() not in shown
    assert b"s3cret" in Upstream.from_environ({"all_proxy": "http://user:s3cret@proxy.example:1"}).secrets


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("proxy.example:3128", ("proxy.example", 3128)),
        ("proxy.example", ("proxy.example", 80)),
        ("http://Proxy.Example./", ("proxy.example", 80)),
        ("https://proxy.example", ("proxy.example", 443)),
        ("HTTP://[2001:db8::1]:3128", ("2001:db8::1", 3128)),
        ("http://[2001:db8::1]", ("2001:db8::1", 80)),
        ("http://proxy.example:3128/pac?x", ("proxy.example", 3128)),
    ],
)
def test_addresses_of_proxies_as_people_write_them(value: str, address: tuple[str, int]) -> None:
    """With and without scheme, port and slash."""
    assert parse_proxy(value, "HTTPS_PROXY").address == address


@pytest.mark.parametrize(
    "value",
    [
        "socks5://user:s3cret@proxy.example:1080",
        "socks5h://user:s3cret@h:1",
        "SOCKS4://s3cret@h:1",
        "ftp://s3cret@h",
        "pac+http://s3cret@h",
        "http://user:s3cret@",
        "http://s3cret@h:0",
        "http://s3cret@h:99999",
        "http://s3cret@h:x",
        "http://s3cret@[::1",
        "http://s3cret@a b:1",
    ],
)
def test_what_cannot_be_chained_is_refused_by_name_and_without_its_secret(value: str) -> None:
    """STYLE 4.6: a clear error with a hint; never the value, which may hold a password."""
    with pytest.raises(Unsupported, match="HTTPS_PROXY") as raised:
        Upstream.from_environ({"HTTPS_PROXY": value})
    assert raised.value.hint
    assert "s3cret" not in f"{raised.value} {raised.value.hint}"


OURSELVES = ["http://127.0.0.1:8080", "http://localhost:8080/", "127.1:8080", "http://[::1]:8080", "http://[::ffff:127.0.0.1]:8080"]
OURSELVES += [
    "http://0.0.0.0:8080",
    "http://2130706433:8080",
    "http://0x7f.1:8080",
    "http://LocalHost.:8080",
    "http://agent-2@127.0.0.2:8080",
]


@pytest.mark.parametrize("value", OURSELVES)
def test_in_a_shell_that_points_at_us_the_former_proxy_is_used(value: str) -> None:
    """T-R12: `eval "$(secondtake env)"`, then `secondtake proxy`: refuses itself as upstream, uses the former proxy."""
    environ = {"HTTPS_PROXY": value, "HTTP_PROXY": value, "NO_PROXY": "localhost,db.example", "SECONDTAKE_UPSTREAM": CORP}
    known = Upstream.from_environ({**environ, "SECONDTAKE_PROXY": "http://127.0.0.1:8080"})
    bound = Upstream.from_environ(environ).excluding({8080})
    for upstream in (known, bound):
        assert str(upstream.via("https", "host.example", 443)) == CORP
        assert str(upstream.via("http", "db.example", 80)) == CORP, "the NO_PROXY that we put there is not the caller's"
        assert re.search(r"this proxy itself .* through http://proxy\.corp\.example:3128 \(SECONDTAKE_UPSTREAM\)", upstream.notes[0])
    assert Upstream.from_environ(environ).excluding({8081}).notes == ()


def test_without_a_former_proxy_we_go_out_directly_and_say_so() -> None:
    """T-R12: refused as upstream, in any case."""
    upstream = Upstream.from_environ({"ALL_PROXY": "http://localhost:8080"}).excluding({8080})
    assert upstream.via("https", "host.example", 443) is None
    assert upstream.notes[0].endswith("going out directly")


def test_a_former_proxy_that_is_ourselves_too_is_no_way_out() -> None:
    """T-R12: no loop by two variables either."""
    upstream = Upstream.from_environ({"HTTPS_PROXY": "http://localhost:8080", "SECONDTAKE_UPSTREAM": "http://127.0.0.1:8080"})
    assert upstream.excluding({8080}).via("https", "host.example", 443) is None


def test_this_machine_by_another_name_is_ourselves_where_the_caller_knows_it() -> None:
    """DESIGN 3: an upstream equal to our own address is refused; the name of this machine is the caller's to look up."""
    upstream = Upstream.from_environ({"HTTPS_PROXY": "http://workstation.example:8080"})
    assert upstream.excluding({8080}).via("https", "host.example", 443) is not None
    assert upstream.excluding({8080}, is_ours=lambda host: host == "workstation.example").via("https", "host.example", 443) is None


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"HTTPS_PROXY": CORP, "HTTP_PROXY": CORP},
        {"ALL_PROXY": CORP},
        {"HTTPS_PROXY": CORP},
        {"HTTPS_PROXY": CORP, "HTTP_PROXY": "http://other.example:1", "NO_PROXY": "a.example, .b.example;c;10.0.0.0/8 [fd00::1]:1"},
        {"HTTPS_PROXY": "http://us:p\udcff@other.example:1", "NO_PROXY": "\udcff"},
        {"HTTP_PROXY": "http://us%20er:p%25;ss@other.example:1", "no_proxy": "*"},
    ],
)
def test_the_former_settings_survive_the_variable(environ: dict[str, str]) -> None:
    """T-R12: nothing of the caller's proxy settings is lost on the way through `SECONDTAKE_UPSTREAM`."""
    former = parse_former(former_value(environ) or "")
    before = Upstream.from_environ(environ).settings
    assert (former.https, former.http) == (before.https, before.http)
    for host in ("a.example", "x.b.example", "10.1.1.1", "fd00::1", "host.example"):
        for scheme in ("http", "https"):
            assert former.via(scheme, host, 1) == before.via(scheme, host, 1)


def test_pointing_a_shell_at_us_twice_keeps_the_first_former_proxy() -> None:
    """T-R12: `eval "$(secondtake env)"` a second time."""
    ours = "http://127.0.0.1:8080"
    environ = {"HTTPS_PROXY": ours, "HTTP_PROXY": ours, "SECONDTAKE_PROXY": ours, "SECONDTAKE_UPSTREAM": CORP}
    assert former_value(environ) == CORP
    assert former_value({**environ, "SECONDTAKE_UPSTREAM": ""}) is None


@pytest.mark.parametrize(
    ("status", "port", "said"),
    [
        (403, 80, "443 only, and this asks for port 80"),
        (403, 443, "rules"),
        (407, 443, "user name and password"),
        (503, 443, "cannot reach"),
        (400, 443, "would not open"),
    ],
)
def test_a_refused_tunnel_is_explained(status: int, port: int, said: str) -> None:
    """T-R9: behind a proxy that forbids CONNECT to port 80, a clear error that says so."""
    message = Via("http", "proxy.example", 3128).explain(status, "index.example", port)
    assert said in message
    assert f"http://proxy.example:3128 answered {status} to CONNECT index.example:{port}" in message
