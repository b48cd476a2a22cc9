"""How the proxy itself goes out: through the caller's own proxy, chosen per request as curl and requests choose.

Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, lower case first. In a shell that has been pointed at us
(`eval "$(secondtake env)"`) these name ourselves: then `SECONDTAKE_UPSTREAM`, the former proxy, is used (CASES T-R12).

* Unsupported              a proxy of a kind that cannot be chained (SOCKS), or a value that is none
"""

from __future__ import annotations

import base64
import ipaddress
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote, unquote, unquote_to_bytes

from secondtake.cassettes.errors import BadInput
from secondtake.proxy.addresses import Address, literal, plain

OURS = "SECONDTAKE_PROXY"
FORMER = "SECONDTAKE_UPSTREAM"
_DEFAULT_PORTS = {"http": 80, "https": 443}
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


class Unsupported(BadInput):
    """A proxy that cannot be chained."""


@dataclass(frozen=True, slots=True)
class Via:
    """A proxy to go through."""

    scheme: str
    """`http` or `https`: how the proxy itself is spoken to."""
    host: str
    port: int
    username: bytes | None = field(default=None, repr=False)
    password: bytes | None = field(default=None, repr=False)

    @property
    def authorization(self) -> bytes | None:
        """The value of Proxy-Authorization (RFC 7617), None without a credential. For this proxy only; never recorded."""
        if self.username is None:
            return None
        return b"Basic " + base64.b64encode(self.username + b":" + (self.password or b""))

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """What the redactor has to know: the password, and the credential as it stands in the header."""
        if self.username is None:
            return ()
        return tuple(secret for secret in (self.password, (self.authorization or b"").removeprefix(b"Basic ")) if secret)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to connect to."""
        return self.host, self.port

    def __str__(self) -> str:
        """For people; without the credential."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def explain(self, status: int, host: str, port: int) -> str:
        """What it means that this proxy answered a CONNECT with `status` (CASES T-R9)."""
        target = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        match status:
            case 407 if self.username is None:
                why = "it asks for a user name and password: put them into HTTPS_PROXY"
            case 407:
                why = "it refuses the user name and password in HTTPS_PROXY, or wants another scheme than Basic"
            case 403 | 405 if port != 443:
                why = f"many proxies allow CONNECT to port 443 only, and this asks for port {port}"
            case 403 | 405:
                why = "its rules do not allow this host"
            case 502 | 503 | 504:
                why = "it cannot reach that host"
            case _:
                why = "it would not open the tunnel"
        return f"the proxy {self} answered {status} to CONNECT {target}: {why}"


@dataclass(frozen=True, slots=True)
class _Rule:
    """One entry of NO_PROXY; an empty one matches nothing."""

    everything: bool = False
    dotless: bool = False
    network: ipaddress.IPv4Network | ipaddress.IPv6Network | None = None
    name: str = ""
    port: int | None = None

    def match(self, host: str, address: Address | None, port: int) -> bool:
        if self.port is not None and self.port != port:
            return False
        if self.network is not None:
            return address is not None and address.version == self.network.version and address in self.network
        if self.dotless:
            return address is None and "." not in host
        return self.everything or (bool(self.name) and (host == self.name or host.endswith(f".{self.name}")))


@dataclass(frozen=True, slots=True)
class Exceptions:
    """NO_PROXY: hosts that are reached directly.

    Entries are parted by commas or space: `*`, a name (itself and its subdomains, with or without a leading `.` or `*.`), an
    address, an address range, `<local>` (names without a dot); each may end in `:port`. Case does not matter.
    """

    text: str = ""
    _rules: tuple[_Rule, ...] = field(default=(), repr=False, compare=False)

    @classmethod
    def of(cls, text: str) -> Exceptions:
        """Read the value; what makes no sense matches nothing."""
        return cls(text, tuple(_exception(entry) for entry in re.split(r"[,\s]+", text) if entry))

    def match(self, host: str, port: int) -> bool:
        """Whether the host is reached directly."""
        name = plain(host)
        address = literal(name)
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(rule.match(name, address, port) for rule in self._rules)


@dataclass(frozen=True, slots=True)
class Settings:
    """One set of proxy variables."""

    https: Via | None = None
    http: Via | None = None
    exceptions: Exceptions = Exceptions()

    def via(self, scheme: str, host: str, port: int) -> Via | None:
        """The proxy for a request to this origin. Never one for loopback: that of the proxy's machine is not meant (as in Go)."""
        chosen = self.http if scheme in {"http", "ws"} else self.https
        return None if chosen is None or _is_loopback(host) or self.exceptions.match(host, port) else chosen


@dataclass(frozen=True, slots=True)
class Upstream:
    """The way out. `notes` are lines for the user: what was refused, and what is used instead."""

    settings: Settings = Settings()
    former: Settings = Settings()
    notes: tuple[str, ...] = ()

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Upstream:
        """Read the caller's variables.

        Raises:
            Unsupported: a variable names a SOCKS proxy, or no proxy at all. No credential is in the message.
        """
        former = parse_former(environ.get(FORMER, ""))
        upstream = cls(_settings(environ), former)
        ours = environ.get(OURS, "")
        if ours:
            via = parse_proxy(ours, OURS)
            return upstream._without(lambda other: other.port == via.port and _same_host(other.host, via.host))
        return upstream

    def via(self, scheme: str, host: str, port: int) -> Via | None:
        """The proxy to use for this origin, None to go directly."""
        return self.settings.via(scheme, host, port)

    def excluding(self, ports: Collection[int], *, is_ours: Callable[[str], bool] | None = None) -> Upstream:
        """The same way out without ourselves, once the ports we listen on are known.

        Any spelling of loopback with one of `ports` is ourselves; `is_ours` says so for further host names.
        """
        return self._without(
            lambda via: via.port in ports and (_is_loopback(via.host) or (is_ours is not None and is_ours(via.host))),
        )

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """What the redactor has to know of all proxies named here."""
        vias = (self.settings.https, self.settings.http, self.former.https, self.former.http)
        return tuple(dict.fromkeys(secret for via in vias if via is not None for secret in via.secrets))

    def _without(self, is_us: Callable[[Via], bool]) -> Upstream:
        def refused(via: Via | None) -> bool:
            return via is not None and is_us(via)

        former = replace(
            self.former,
            https=None if refused(self.former.https) else self.former.https,
            http=None if refused(self.former.http) else self.former.http,
        )
        if not (refused(self.settings.https) or refused(self.settings.http)):
            return replace(self, former=former)
        us = self.settings.https if refused(self.settings.https) else self.settings.http
        instead = former.https or former.http
        way = f"through {instead} ({FORMER})" if instead else "directly"
        note = f"the proxy variables name this proxy itself ({us}); going out {way}"
        settings = Settings(
            former.https if refused(self.settings.https) else self.settings.https,
            former.http if refused(self.settings.http) else self.settings.http,
            former.exceptions,
        )
        return Upstream(settings, former, (*self.notes, note))


def parse_proxy(value: str, variable: str) -> Via:
    """Read `[scheme://][user[:password]@]host[:port]`; percent escapes in user and password are undone.

    A password may hold `@`, `/` or `#` unescaped: the last `@` parts it from the host.

    Raises:
        Unsupported: names `variable`, never the value.
    """
    text = value.strip()
    match = _SCHEME.match(text)
    scheme = match.group(1).lower() if match else "http"
    rest = text[match.end() :] if match else text
    if scheme.startswith("socks"):
        hint = f"run a bridge that speaks HTTP to us and SOCKS to it, and name the bridge in {variable}; or unset {variable} to go directly"
        raise Unsupported(f"{variable} names a SOCKS proxy ({scheme}://…), which cannot be chained", hint=hint)
    if scheme not in _DEFAULT_PORTS:
        raise Unsupported(f"{variable} names a proxy of an unknown kind: {scheme}://…", hint="http:// and https:// proxies can be chained")
    userinfo, at, hostport = rest.rpartition("@")
    hostport = re.split(r"[/?#]", hostport, maxsplit=1)[0]
    bracketed = re.fullmatch(r"\[([^\]]+)\](?::(\d+))?", hostport)
    named = re.fullmatch(r"([^:\[\]\s]+)(?::(\d*))?", hostport)
    found = bracketed or named
    port = int(found.group(2)) if found and found.group(2) else _DEFAULT_PORTS[scheme]
    if found is None or not 0 < port < 65536:
        raise Unsupported(f"{variable} is not the address of a proxy", hint="it should look like http://proxy.example:3128")
    user, colon, password = userinfo.partition(":")
    return Via(
        scheme,
        plain(unquote(found.group(1))),
        port,
        unquote_to_bytes(os.fsencode(user)) if at else None,
        unquote_to_bytes(os.fsencode(password)) if at and colon else None,
    )


def former_value(environ: Mapping[str, str]) -> str | None:
    """What `SECONDTAKE_UPSTREAM` has to say so that nothing of the caller's proxy settings is lost; None where there are none.

    One URL where it says all, else `https=URL;http=URL;no=HOSTS`, values percent-escaped. In a shell that points at us already
    it is what the variable says now.
    """
    https, http, exceptions = _raw(environ)
    ours = environ.get(OURS)
    if ours and ours in {https, http}:
        return environ.get(FORMER) or None
    if not https and not http:
        return None
    if https and https == http and not exceptions:
        return https
    pairs = (("https", https), ("http", http), ("no", exceptions))
    return ";".join(f"{name}={quote(value, safe=_UNESCAPED, errors='surrogateescape')}" for name, value in pairs if value)


_UNESCAPED = "/:@,.*[]<>"


def parse_former(value: str) -> Settings:
    """Read `SECONDTAKE_UPSTREAM`: a URL for everything, or `https=URL;http=URL;no=HOSTS`."""
    text = value.strip()
    if not text:
        return Settings()
    if not re.match(r"(https|http|no)=", text):
        via = parse_proxy(text, FORMER)
        return Settings(via, via)
    parts = dict(part.partition("=")[::2] for part in text.split(";"))
    vias = {name: parse_proxy(unquote(parts[name], errors="surrogateescape"), FORMER) for name in ("https", "http") if parts.get(name)}
    return Settings(vias.get("https"), vias.get("http"), Exceptions.of(unquote(parts.get("no", ""), errors="surrogateescape")))


def _raw(environ: Mapping[str, str]) -> tuple[str, str, str]:
    """Lower case first, as curl, requests and Go do; ALL_PROXY for what has none of its own."""

    def value(name: str) -> str:
        return (environ.get(name.lower()) or environ.get(name.upper()) or "").strip()

    every = value("all_proxy")
    # A CGI program gets the client's `Proxy:` header as HTTP_PROXY (CVE-2016-5385): there only the lower-case form counts.
    http = environ.get("http_proxy", "").strip() if "REQUEST_METHOD" in environ else value("http_proxy")
    return value("https_proxy") or every, http or every, value("no_proxy")


def _settings(environ: Mapping[str, str]) -> Settings:
    https, http, exceptions = _raw(environ)
    return Settings(
        parse_proxy(https, "HTTPS_PROXY") if https else None,
        parse_proxy(http, "HTTP_PROXY") if http else None,
        Exceptions.of(exceptions),
    )


def _exception(entry: str) -> _Rule:
    if entry == "*":
        return _Rule(everything=True)
    if entry.lower() == "<local>":
        return _Rule(dotless=True)
    try:
        return _Rule(network=ipaddress.ip_network(entry.removeprefix("[").removesuffix("]"), strict=False))
    except ValueError:
        pass
    found = re.fullmatch(r"(\[[^\]]+\]|[^:]+)(?::(\d+))?", entry)
    if found is None:
        return _Rule()
    port = int(found.group(2)) if found.group(2) else None
    if (address := literal(found.group(1))) is not None:
        return _Rule(network=ipaddress.ip_network(address), port=port)
    return _Rule(name=plain(found.group(1)).removeprefix("*").removeprefix("."), port=port)


def _is_loopback(host: str) -> bool:
    name = plain(host)
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = literal(name)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address is not None and (address.is_loopback or address.is_unspecified)


def _same_host(one: str, other: str) -> bool:
    return plain(one) == plain(other) or (_is_loopback(one) and _is_loopback(other))
