"""Where the recording proxy never goes (SECURITY C-04): our own ports, link-local, cloud metadata, and, unless asked, loopback.

The agent could reach private ranges without us, so they are allowed. A name is looked up once, what it resolves to is judged,
and exactly those addresses are connected to: an answer that changes between two look-ups (DNS rebinding) gains nothing. In
replay nothing is resolved at all.

* Forbidden                the target is one of these; `reason` says which, for the refusal and the event
* Unresolved               the name has no address
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
import threading
import unicodedata
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from secondtake.cassettes.errors import RecordedError

type Address = ipaddress.IPv4Address | ipaddress.IPv6Address
type Resolver = Callable[[str, int], Awaitable[Sequence[str]]]
"""From a host name and port to addresses in the order to try them; raises OSError where there are none."""


class Reason(StrEnum):
    """Why a target is refused."""

    OWN_PORT = "our own port"
    LINK_LOCAL = "a link-local address"
    METADATA = "a cloud metadata service"
    LOOPBACK = "loopback (allowed with --loopback)"
    NOT_UNICAST = "not an address of one machine"


class Forbidden(RecordedError):
    """The target is refused while recording."""

    def __init__(self, host: str, port: int, reason: Reason, address: Address | None = None) -> None:
        shown = f"{host}:{port}" if address is None or str(address) == host else f"{host}:{port} ({address})"
        hint = "loopback is reached directly, by NO_PROXY; through the proxy only with --loopback" if reason is Reason.LOOPBACK else None
        super().__init__(f"refused: {shown} is {reason}", hint=hint)
        self.reason = reason


class Unresolved(RecordedError):
    """The name has no address."""


METADATA_NAMES = frozenset(
    {
        "metadata",
        "metadata.goog",
        "metadata.google.internal",
        "metadata.azure.internal",
        "metadata.tencentyun.com",
        "metadata.platformequinix.com",
        "instance-data",
        "instance-data.ec2.internal",
    }
)
"""Names under which clouds answer with credentials; refused by name too, since behind a chained proxy nothing is resolved here."""

METADATA_ADDRESSES: frozenset[Address] = frozenset(
    ipaddress.ip_address(address)
    for address in (
        "169.254.169.254",  # most clouds; link-local anyway
        "169.254.170.2",  # container credentials; link-local anyway
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
        "fd00:42::42",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
    )
)
_NAT64 = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("64:ff9b:1::/48"))
_THIS_NETWORK = ipaddress.ip_network("0.0.0.0/8")
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]*|[0-9]+)\Z")


def _bound_here(address: Address) -> bool:
    """Whether the address is one of this machine's: one can bind to it."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Rules:
    """What is refused. `own_ports` are ports that this process listens on, at whatever address of this machine."""

    own_ports: frozenset[int] = frozenset()
    loopback: bool = False
    is_ours: Callable[[Address], bool] = field(default=_bound_here, repr=False)

    def judge(self, address: Address, port: int) -> Reason | None:
        """Why this address and port are refused; None where they are not."""
        for form in unwrapped(address):
            loopback = form.is_loopback or form.is_unspecified or (form.version == 4 and form in _THIS_NETWORK)
            if port in self.own_ports and (loopback or self.is_ours(form)):
                return Reason.OWN_PORT
            if form in METADATA_ADDRESSES:
                return Reason.METADATA
            if form.is_link_local:
                return Reason.LINK_LOCAL
            if loopback and not self.loopback:
                return Reason.LOOPBACK
            if form.is_multicast or form == _BROADCAST:
                return Reason.NOT_UNICAST
        return None

    def judge_name(self, host: str, port: int) -> None:
        """Refuse by what can be seen without resolving; enough where a chained proxy resolves.

        Raises:
            Forbidden: a metadata name, a loopback name, or an address literal, in any spelling, that `judge` refuses.
        """
        name = plain(host)
        if name in METADATA_NAMES:
            raise Forbidden(host, port, Reason.METADATA)
        if name == "localhost" or name.endswith(".localhost"):
            if port in self.own_ports:
                raise Forbidden(host, port, Reason.OWN_PORT)
            if not self.loopback:
                raise Forbidden(host, port, Reason.LOOPBACK)
        address = literal(name)
        if address is not None and (reason := self.judge(address, port)) is not None:
            raise Forbidden(host, port, reason, address)

    def choose(self, host: str, port: int, addresses: Iterable[str]) -> tuple[Address, ...]:
        """Of what a name resolved to, the addresses that may be connected to, in order; the caller connects to these only.

        Raises:
            Forbidden: none is left; the reason is that of the first.
            Unresolved: there were none.
        """
        allowed: list[Address] = []
        refused: list[tuple[Reason, Address]] = []
        for text in addresses:
            address = ipaddress.ip_address(text.partition("%")[0])
            reason = self.judge(address, port)
            if reason is None:
                allowed.append(address)
            else:
                refused.append((reason, address))
        if not allowed:
            if refused:
                raise Forbidden(host, port, *refused[0])
            raise Unresolved(f"no address for {host}")
        return tuple(dict.fromkeys(allowed))


_BROADCAST = ipaddress.ip_address("255.255.255.255")


async def resolve(host: str, port: int, rules: Rules, resolver: Resolver | None = None) -> tuple[Address, ...]:
    """Judge the name, look it up once, judge what it resolves to; at least one address is returned.

    Raises:
        Forbidden: the name, or all it resolves to, is refused.
        Unresolved: the look-up failed.
    """
    rules.judge_name(host, port)
    name = plain(host)
    if (address := literal(name)) is not None:
        return (address,)
    try:
        found = await (resolver or system_resolver)(name, port)
    except (OSError, UnicodeError) as error:
        raise Unresolved(f"cannot look up {host}: {error}") from error
    return rules.choose(host, port, found)


async def system_resolver(host: str, port: int) -> Sequence[str]:
    """The machine's own resolver (hosts file, search domains and all), as the agent would have asked it.

    Each look-up has a thread of its own: those of dead hosts take half a minute, and must neither stand before others nor be waited
    for when the proxy stops.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def settle(found: list[str] | OSError | UnicodeError) -> None:
        if answer.done():
            return  # nobody waits for it any more
        if isinstance(found, list):
            answer.set_result(found)
        else:
            answer.set_exception(found)

    def look_up() -> None:
        found: list[str] | OSError | UnicodeError
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
        except (OSError, UnicodeError) as error:
            found = error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, found)

    threading.Thread(target=look_up, name=f"look-up {host[:40]}", daemon=True).start()
    return await answer


def plain(host: str) -> str:
    """Compatibility forms folded (`①`, full-width dots), lower case, no brackets, no final dot."""
    folded = unicodedata.normalize("NFKC", host).replace("。", ".").strip().lower()
    return folded.removeprefix("[").removesuffix("]").rstrip(".")


def literal(host: str) -> Address | None:
    """The address that `host` spells, in every form a resolver takes as one; None for a name.

    IPv6 with or without brackets and zone; IPv4 in one to four parts, each decimal, octal or hexadecimal (inet_aton).
    """
    text = plain(host).partition("%")[0]
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        pass
    parts = text.split(".")
    if not 1 <= len(parts) <= 4 or not all(_NUMBER.match(part) for part in parts):
        return None
    try:
        numbers = [_number(part) for part in parts]
    except ValueError:
        return None
    *high, last = numbers
    if any(number > 255 for number in high) or last >= 256 ** (5 - len(numbers)):
        return None
    value = last
    for place, number in enumerate(high):
        value |= number << (8 * (3 - place))
    return ipaddress.IPv4Address(value)


def _number(text: str) -> int:
    if text[:2] in {"0x", "0X"}:
        return int(text[2:] or "0", 16)
    return int(text, 8 if text.startswith("0") else 10)


def unwrapped(address: Address) -> tuple[Address, ...]:
    """The address, and each IPv4 address that it carries inside: mapped, compatible, NAT64, 6to4, Teredo, ISATAP."""
    if isinstance(address, ipaddress.IPv4Address):
        return (address,)
    inner: list[Address] = [ipaddress.ip_address(address.packed)] if address.scope_id else [address]
    if address.ipv4_mapped is not None:
        inner.append(address.ipv4_mapped)
    if address.sixtofour is not None:
        inner.append(address.sixtofour)
    if address.teredo is not None:
        inner.extend(address.teredo)
    if any(address in network for network in _NAT64) or address.packed[8:12] in {b"\x00\x00\x5e\xfe", b"\x02\x00\x5e\xfe"}:
        inner.append(ipaddress.IPv4Address(address.packed[12:]))
    if address.packed[:12] == bytes(12) and int(address) > 1:
        inner.append(ipaddress.IPv4Address(address.packed[12:]))
    return tuple(inner)
