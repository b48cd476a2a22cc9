"""Where the recording proxy never goes."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.proxy.addresses import Forbidden, Reason, Resolver, Rules, Unresolved, literal, plain, resolve, system_resolver, unwrapped

OWN = 8080
RULES = Rules(frozenset({OWN}), is_ours=lambda address: str(address) in {"10.1.2.3", "2001:db8::3"})
OPEN = Rules(frozenset({OWN}), loopback=True, is_ours=lambda _: False)


def answering(*addresses: str) -> Resolver:
    async def resolver(host: str, port: int) -> Sequence[str]:
        return addresses

    return resolver


async def refusing(host: str, port: int) -> Sequence[str]:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


async def never(host: str, port: int) -> Sequence[str]:
    raise AssertionError(f"{host} was looked up")


def target(host: str, port: int = 443, *, rules: Rules = RULES, resolver: Resolver = never) -> list[str]:
    return [str(address) for address in asyncio.run(resolve(host, port, rules, resolver))]


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[::ffff:169.254.169.254]",
        "::ffff:a9fe:a9fe",
        "2852039166",
        "0xa9fea9fe",
        "0xA9.0xFE.0xA9.0xFE",
        "0251.0376.0251.0376",
        "169.254.43518",
        "169.16689662",
        "169.254.169.254.",
        "169。254。169。254",
        "①⑥⑨.②⑤④.①⑥⑨.②⑤④",
        "64:ff9b::169.254.169.254",
        "2002:a9fe:a9fe::1",
        "::169.254.169.254",
        "fe80::5efe:169.254.169.254",
        "fd00:ec2::254",
        "FD00:0EC2:0:0:0:0:0:254",
        "fd20:ce::254",
        "100.100.100.200",
        "168.63.129.16",
        "metadata.google.internal",
        "Metadata.Google.Internal.",
        "metadata",
        "instance-data.ec2.internal",
        "ｍｅｔａｄａｔａ.google.internal",
    ],
)
@pytest.mark.parametrize("rules", [RULES, OPEN])
def test_a_metadata_service_is_refused_in_every_spelling_and_never_looked_up(host: str, rules: Rules) -> None:
    """C-04: decimal, octal, hexadecimal, mapped, final dot, by name; `--loopback` changes nothing."""
    with pytest.raises(Forbidden) as raised:
        target(host, 80, rules=rules)
    assert raised.value.reason in {Reason.METADATA, Reason.LINK_LOCAL}


@pytest.mark.parametrize("host", ["169.254.0.1", "fe80::1", "fe80::1%eth0", "[fe80::1%25eth0]", "febf::1", "::ffff:169.254.9.9"])
def test_link_local_is_refused(host: str) -> None:
    """C-04: 169.254/16 and fe80::/10."""
    with pytest.raises(Forbidden) as raised:
        target(host)
    assert raised.value.reason is Reason.LINK_LOCAL


LOOPBACKS = [
    "localhost",
    "LOCALHOST.",
    "anything.localhost",
    "127.0.0.1",
    "127.8.9.10",
    "127.1",
    "127.0x1",
    "0177.1",
    "2130706433",
    "0x7f000001",
    "0",
    "0.0.0.0",
    "0.1.2.3",
    "::",
    "[::]",
    "::1",
    "[0:0:0:0:0:0:0:1]",
    "::ffff:127.0.0.1",
    "::ffff:7f00:1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
]


@pytest.mark.parametrize("host", LOOPBACKS)
def test_loopback_is_refused_unless_allowed(host: str) -> None:
    """C-04: through the proxy only with `--loopback`."""
    with pytest.raises(Forbidden, match="loopback") as raised:
        target(host, 9999)
    assert raised.value.reason is Reason.LOOPBACK
    assert raised.value.hint is not None
    assert "--loopback" in raised.value.hint
    assert target(host, 9999, rules=OPEN, resolver=answering("127.0.0.1"))


@pytest.mark.parametrize("host", LOOPBACKS)
@pytest.mark.parametrize("rules", [RULES, OPEN])
def test_our_own_port_is_refused_in_every_spelling_also_where_loopback_is_allowed(host: str, rules: Rules) -> None:
    """C-04, CVE-2025-23217: no control port is reachable through the proxy."""
    with pytest.raises(Forbidden) as raised:
        target(host, OWN, rules=rules)
    assert raised.value.reason is Reason.OWN_PORT


def test_our_own_port_is_refused_at_this_machines_other_addresses() -> None:
    """C-04: the address of a network card leads to us as well; another machine's same port does not."""
    for host in ("10.1.2.3", "2001:db8::3"):
        with pytest.raises(Forbidden) as raised:
            target(host, OWN)
        assert raised.value.reason is Reason.OWN_PORT
    assert target("10.1.2.4", OWN) == ["10.1.2.4"]
    assert target("10.1.2.3", OWN + 1) == ["10.1.2.3"]


def test_by_default_what_can_be_bound_to_is_ours() -> None:
    """C-04: no list of network cards is kept; 192.0.2.0/24 is on no machine (RFC 5737)."""
    rules = Rules(frozenset({OWN}))
    assert rules.judge(ipaddress.ip_address("192.0.2.1"), OWN) is None
    assert rules.judge(ipaddress.ip_address("127.0.0.1"), OWN) is Reason.OWN_PORT


@pytest.mark.parametrize("address", ["169.254.169.254", "127.0.0.1", "::1", "fe80::1%eth0", "fd00:ec2::254", "0.0.0.0", "::ffff:127.0.0.1"])
def test_a_name_that_resolves_there_is_refused(address: str) -> None:
    """C-04: judged on the resolved address."""
    with pytest.raises(Forbidden, match=r"innocent\.example:443"):
        target("innocent.example", resolver=answering(address))


def test_of_a_mixed_answer_only_the_allowed_addresses_are_connected_to() -> None:
    """C-04: the resolved address is checked and connected to; one bad among them is not tried."""
    assert target("host.example", resolver=answering("127.0.0.1", "192.0.2.9", "169.254.169.254", "2001:db8::9")) == [
        "192.0.2.9",
        "2001:db8::9",
    ]


def test_a_name_is_looked_up_once() -> None:
    """C-04, DNS rebinding: the second answer of a name that changes is never asked for."""
    answers = iter([["192.0.2.9"], ["169.254.169.254"]])

    async def changing(host: str, port: int) -> Sequence[str]:
        return next(answers)

    assert target("rebind.example", resolver=changing) == ["192.0.2.9"]
    assert next(answers) == ["169.254.169.254"]


@pytest.mark.parametrize("host", ["10.0.0.7", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd12:3456::1", "8.8.8.8", "2001:db8::1"])
def test_private_ranges_are_allowed(host: str) -> None:
    """C-04: the agent could reach them without us (an index on a private address)."""
    assert target(host) == [host]


def test_a_literal_in_another_spelling_becomes_the_plain_address() -> None:
    """C-04: what is judged is what is connected to."""
    assert target("0x0a.7") == ["10.0.0.7"]


@pytest.mark.parametrize("host", ["224.0.0.1", "255.255.255.255", "ff02::1"])
def test_an_address_of_many_machines_is_refused(host: str) -> None:
    """C-04: nothing that is not one machine."""
    with pytest.raises(Forbidden):
        target(host)


def test_a_failed_look_up_is_unresolved_not_forbidden() -> None:
    """STYLE 4.6: the two are told apart."""
    with pytest.raises(Unresolved, match=r"cannot look up gone\.example"):
        target("gone.example", resolver=refusing)
    with pytest.raises(Unresolved):
        target("empty.example", resolver=answering())
    with pytest.raises(Unresolved):
        asyncio.run(resolve("a" * 300 + ".example", 443, RULES))


@pytest.mark.loopback
def test_the_system_resolver_knows_localhost() -> None:
    """C-04: the real resolver, with nothing but the hosts file."""
    found = asyncio.run(resolve("localhost", 9999, OPEN))
    assert all(address.is_loopback for address in found)


@pytest.mark.parametrize("host", ["1.2.3.4.5", "1.2.3.256", "256.1", "4294967296", "08.1.1.1", "1..2", "", ".", "0xg", "host.1a", "-1"])
def test_what_only_looks_like_an_address_is_a_name(host: str) -> None:
    """inet_aton(3): out of range, too many parts, no octal digit."""
    assert literal(host) is None


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.lists(st.sampled_from(["d", "o", "x", "X"]), min_size=4, max_size=4))
def test_every_spelling_of_an_address_is_that_address(value: int, parts: int, bases: list[str]) -> None:
    """C-04: one to four parts, each in any base, as inet_aton(3) reads them; the C library agrees."""
    numbers = [(value >> (24 - 8 * place)) & 255 for place in range(parts - 1)]
    numbers.append(value & (2 ** (8 * (5 - parts)) - 1))
    write: dict[str, Callable[[int], str]] = {"d": str, "o": lambda number: f"0{number:o}", "x": hex, "X": lambda number: f"0X{number:X}"}
    text = ".".join(write[base](number) for number, base in zip(numbers, bases, strict=False))
    assert literal(text) == ipaddress.IPv4Address(value)
    assert socket.inet_aton(text) == value.to_bytes(4)


@given(st.integers(0, 2**32 - 1))
def test_an_address_inside_another_is_seen(value: int) -> None:
    """C-04: mapped, NAT64, 6to4."""
    inner = ipaddress.IPv4Address(value)
    for packed in (
        bytes(10) + b"\xff\xff" + inner.packed,
        b"\x00\x64\xff\x9b" + bytes(8) + inner.packed,
        b"\x20\x02" + inner.packed + bytes(10),
    ):
        assert inner in unwrapped(ipaddress.IPv6Address(packed))


@given(st.text(max_size=40))
def test_no_host_text_raises_anything_else(host: str) -> None:
    """Hostile names: a verdict or a refusal, never another error."""
    plain(host)
    literal(host)
    with contextlib.suppress(Forbidden):
        RULES.judge_name(host, OWN)


async def test_dead_look_ups_do_not_stand_before_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """T-O3: forty hosts whose name servers are silent; another name is looked up at once, and nothing waits for them in the end."""
    silent = threading.Event()

    def look_up(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        if host == "silent.example":
            silent.wait()
        return [(0, 0, 0, "", ("192.0.2.7", port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    waiting = [asyncio.ensure_future(system_resolver("silent.example", 443)) for _ in range(40)]
    try:
        assert list(await system_resolver("other.example", 443)) == ["192.0.2.7"]
        assert not any(one.done() for one in waiting)
    finally:
        for one in waiting:
            one.cancel()
        silent.set()
