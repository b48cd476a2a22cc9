"""The certificate authority: keys, dates, constraints, and what real clients say to its certificates."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mitmproxy.certs import CertStore

from secondtake.proxy.authority import (
    BACKDATED,
    CA_FILE,
    KEPT_LIFETIME,
    RUN_LIFETIME,
    Authority,
    Damaged,
    Leaf,
    general_names,
    sweep,
)

NOW = datetime.now(UTC).replace(microsecond=0)
RECORDED = datetime(2023, 5, 17, 12, 0, tzinfo=UTC)


def openssl_verify(authority: bytes, leaf: Leaf, tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "authority.pem").write_bytes(authority)
    (tmp_path / "leaf.pem").write_bytes(leaf.pem)
    arguments = ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-no-CApath", "-no-CAstore", "-CAfile"]
    return subprocess.run(
        [*arguments, str(tmp_path / "authority.pem"), *options, str(tmp_path / "leaf.pem")], capture_output=True, text=True, check=False
    )


@contextmanager
def tls_server(leaf: Leaf, tmp_path: Path, host: str = "127.0.0.1") -> Iterator[int]:
    """Answers each connection with an empty 200 until the block ends."""
    (tmp_path / "server.pem").write_bytes(leaf.pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    server = socket.create_server((host, 0), family=socket.AF_INET6 if ":" in host else socket.AF_INET)

    def serve() -> None:
        while True:
            try:
                client, _ = server.accept()
            except OSError:
                return
            try:
                with client, context.wrap_socket(client, server_side=True) as tls:
                    tls.recv(4096)
                    tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            except OSError:
                continue

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server.getsockname()[1]
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join()


def curl(url: str, bundle: Path, *options: str) -> int:
    return subprocess.run(
        ["curl", "-qsS", "-m", "10", "--noproxy", "*", "--cacert", str(bundle), "-o", os.devnull, *options, url],
        capture_output=True,
        check=False,
    ).returncode


@pytest.fixture
def authority(tmp_path: Path) -> Iterator[Authority]:
    with Authority.create(tmp_path / "runs", now=NOW) as made:
        yield made


def test_files_are_private_whatever_the_umask(tmp_path: Path) -> None:
    """C-06, C-18: directory 0700, key 0600, also under a umask that hides nothing."""
    before = os.umask(0)
    try:
        with Authority.create(tmp_path / "runs", now=NOW) as authority:
            assert stat.S_IMODE(authority.directory.stat().st_mode) == 0o700
            assert {stat.S_IMODE(path.stat().st_mode) for path in authority.directory.iterdir()} == {0o600}
    finally:
        os.umask(before)


def test_an_authority_signs_servers_only_and_no_further_authority(authority: Authority) -> None:
    """C-06: EC P-256, path length 0."""
    certificate = authority.certificate
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    assert constraints.critical
    assert constraints.value == x509.BasicConstraints(ca=True, path_length=0)
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)
    with pytest.raises(x509.ExtensionNotFound):
        certificate.extensions.get_extension_for_class(x509.NameConstraints)


def test_a_leaf_does_not_carry_the_key_of_its_authority(authority: Authority) -> None:
    """SECURITY C1: stock mitmproxy's leaves do."""
    leaf = authority.leaf(["host.example"])
    assert leaf.certificate.public_key() != authority.certificate.public_key()
    assert leaf.certificate.public_key() == leaf.key.public_key()
    assert b"PRIVATE" not in authority.ca_pem
    assert b"PRIVATE" not in authority.ca_path.read_bytes()


def test_two_runs_have_different_keys_and_names(tmp_path: Path) -> None:
    """C-06: a leaked run authority is useless in the next run."""
    with Authority.create(tmp_path, now=NOW) as one, Authority.create(tmp_path, now=NOW) as other:
        assert one.certificate.public_key() != other.certificate.public_key()
        assert one.certificate.subject != other.certificate.subject
        leaf = one.leaf(["host.example"])
        assert openssl_verify(other.ca_pem, leaf, tmp_path).returncode != 0


@pytest.mark.parametrize("recorded", [None, RECORDED, NOW + timedelta(days=9)])
def test_dates_hold_from_before_the_recorded_start_to_after_the_run(recorded: datetime | None, tmp_path: Path) -> None:
    """DESIGN 7: valid from the earlier of now and the recorded start, minus two days; C-06: no longer than run and margin."""
    with Authority.create(tmp_path, now=NOW, not_before=recorded) as authority:
        for certificate in (authority.certificate, authority.leaf(["host.example"]).certificate):
            assert certificate.not_valid_before_utc == min(NOW, recorded or NOW) - BACKDATED
            assert certificate.not_valid_after_utc == NOW + RUN_LIFETIME


@pytest.mark.parametrize(
    ("at", "good"),
    [
        (NOW, True),
        (RECORDED, True),
        (RECORDED - timedelta(days=1), True),
        (RECORDED - timedelta(days=3), False),
        (NOW + timedelta(days=8), False),
    ],
)
def test_openssl_takes_a_leaf_at_the_frozen_clock_and_not_outside(at: datetime, good: bool, tmp_path: Path) -> None:
    """D-13, SECURITY C2: a clock frozen at the recorded start finds valid certificates."""
    with Authority.create(tmp_path / "runs", now=NOW, not_before=RECORDED) as authority:
        done = openssl_verify(authority.ca_pem, authority.leaf(["host.example"]), tmp_path, "-attime", str(int(at.timestamp())))
    assert (done.returncode == 0) is good, done.stderr


@pytest.mark.parametrize(
    ("asked", "names"),
    [
        (["192.0.2.7"], ["192.0.2.7"]),
        (["[2001:db8::1]"], ["2001:db8::1"]),
        (["fe80::1%eth0"], ["fe80::1"]),
        (["Host.Example."], ["host.example"]),
        (["bücher.example"], ["xn--bcher-kva.example"]),
        (["under_score.example", "under_score.example"], ["under_score.example"]),
        (["host.example", "[::1]", "10.0.0.1"], ["host.example", "::1", "10.0.0.1"]),
        (["ü" * 70], []),
        (["a." * 130], []),
        (["", "[]"], []),
    ],
)
def test_names_and_addresses_become_the_kind_they_are(asked: list[str], names: list[str]) -> None:
    """T-R6: CONNECT to an IPv4 and to a bracketed IPv6 literal; and names that no certificate can hold do no harm."""
    assert [str(name.value) for name in general_names(asked)] == names


def test_a_name_too_long_for_a_common_name_is_still_certified(authority: Authority, tmp_path: Path) -> None:
    """RFC 5280, upper bound of a common name: 64; the alternative name counts."""
    name = f"{'a' * 60}.{'b' * 60}.example"
    leaf = authority.leaf([name])
    assert openssl_verify(authority.ca_pem, leaf, tmp_path, "-verify_hostname", name).returncode == 0


@pytest.mark.loopback
def test_curl_and_python_take_the_host_that_was_asked_for_and_no_other(authority: Authority, tmp_path: Path) -> None:
    """C-06, T-O4: real clients accept the name and refuse another, and refuse everything without the bundle."""
    leaf = authority.leaf(["host.example", "127.0.0.1"])
    client = ssl.create_default_context(cafile=str(authority.ca_path))
    client.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    with tls_server(leaf, tmp_path) as port:
        for host in ("host.example", "127.0.0.1"):
            with socket.create_connection(("127.0.0.1", port)) as tcp, client.wrap_socket(tcp, server_hostname=host) as tls:
                assert tls.version() == "TLSv1.3"
            assert curl(f"https://{host}:{port}/", authority.ca_path, "--resolve", f"host.example:{port}:127.0.0.1") == 0
        with (
            socket.create_connection(("127.0.0.1", port)) as tcp,
            pytest.raises(ssl.SSLCertVerificationError),
            client.wrap_socket(tcp, server_hostname="other.example"),
        ):
            pass
        wrong_name, unknown = 60, 60
        assert curl(f"https://other.example:{port}/", authority.ca_path, "--resolve", f"other.example:{port}:127.0.0.1") == wrong_name
        with Authority.create(tmp_path / "others", now=NOW) as other:
            assert curl(f"https://127.0.0.1:{port}/", other.ca_path) == unknown


@pytest.mark.loopback
@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="no IPv6 on this machine")
def test_curl_takes_a_leaf_for_an_ipv6_literal(authority: Authority, tmp_path: Path) -> None:
    """T-R6: `https://[::1]:P/`."""
    with tls_server(authority.leaf(["[::1]"]), tmp_path, "::1") as port:
        assert curl(f"https://[::1]:{port}/", authority.ca_path) == 0


@pytest.mark.parametrize(
    ("only", "name", "good"),
    [
        (["host.example"], "host.example", True),
        (["*.host.example"], "deep.in.host.example", True),
        (["host.example"], "other.example", False),
        (["host.example"], "nothost.example", False),
        (["host.example"], "192.0.2.7", False),
        (["host.example"], "2001:db8::1", False),
        (["192.0.2.7"], "192.0.2.7", True),
        (["192.0.2.7"], "192.0.2.8", False),
        (["192.0.2.7"], "2001:db8::1", False),
        (["192.0.2.7"], "host.example", False),
        (["host.example", "192.0.2.7"], "192.0.2.7", True),
    ],
)
def test_only_hosts_binds_the_authority_itself(only: list[str], name: str, good: bool, tmp_path: Path) -> None:
    """C-06, SECURITY C2: outside of the permitted names clients refuse, whatever the proxy signs."""
    with Authority.create(tmp_path / "runs", now=NOW, only_hosts=only) as authority:
        constraints = authority.certificate.extensions.get_extension_for_class(x509.NameConstraints)
        assert constraints.critical
        done = openssl_verify(authority.ca_pem, authority.leaf([name]), tmp_path)
    assert (done.returncode == 0) is good, done.stderr
    assert good or "permitted subtree violation" in done.stderr or "excluded subtree violation" in done.stderr


def test_mitmproxy_takes_the_directory_as_its_own(authority: Authority) -> None:
    """SECURITY C2: placing `mitmproxy-ca.pem` in a private confdir is enough."""
    store = CertStore.from_store(authority.directory, "mitmproxy", 2048)
    assert store.default_ca.to_cryptography() == authority.certificate


def test_removing_leaves_nothing_and_can_be_done_twice(tmp_path: Path) -> None:
    """C-06: deleted at exit."""
    authority = Authority.create(tmp_path / "runs", now=NOW)
    authority.remove()
    authority.remove()
    assert not authority.directory.exists()
    assert not list((tmp_path / "runs").glob("ca-*"))


_DIES = """
import sys, os, signal
from datetime import datetime, UTC
from pathlib import Path
from secondtake.proxy.authority import Authority
authority = Authority.create(Path(sys.argv[1]), now=datetime.now(UTC))
print(authority.directory, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_next_start_sweeps_what_sigkill_left_and_spares_the_living(authority: Authority) -> None:
    """C-06: also after SIGKILL: next start sweeps; never a living run's authority."""
    parent = authority.directory.parent
    path = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    died = subprocess.run([sys.executable, "-c", _DIES, str(parent)], env=path, capture_output=True, text=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    left = Path(died.stdout.strip())
    assert (left / CA_FILE).exists()
    assert sweep(parent) == (left,)
    assert not left.exists()
    assert authority.key_path.exists()
    assert sweep(parent) == ()


def test_a_deletion_that_was_cut_short_is_finished_by_the_next_sweep(tmp_path: Path) -> None:
    """C-06: whatever stood beside the key (bundles) goes too, and the key is the first to go."""
    left = Authority.create(tmp_path, now=NOW)
    (left.directory / "bundle.pem").write_text("x")
    (left.directory / "folder").mkdir()
    (left.directory / "folder" / "deep").write_text("x")
    assert left._lock_fd is not None
    os.close(left._lock_fd)
    left._lock_fd = None
    left.key_path.unlink()
    assert sweep(tmp_path) == (left.directory,)
    assert not left.directory.exists()


@given(st.lists(st.text(max_size=80), max_size=3))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_name_that_a_client_sends_stops_the_handshake(authority: Authority, names: list[str]) -> None:
    """Hostile input: SNI and CONNECT are the client's to choose; stock mitmproxy raises on what IDNA refuses."""
    assert authority.leaf(names).certificate.issuer == authority.certificate.subject


def test_sweeping_touches_nothing_that_is_not_ours(tmp_path: Path) -> None:
    """C-06: a folder of another's with a like name, a link and a file stay; a half-made one of ours goes."""
    (tmp_path / "ca-theirs").mkdir()
    (tmp_path / "ca-theirs" / "thesis.txt").write_text("years of work")
    (tmp_path / "ca-file").write_text("")
    (tmp_path / "ca-link").symlink_to(tmp_path / "ca-theirs")
    (tmp_path / "ca-half").mkdir()
    assert sweep(tmp_path) == (tmp_path / "ca-half",)
    assert sorted(path.name for path in tmp_path.glob("ca-*")) == ["ca-file", "ca-link", "ca-theirs"]
    assert sweep(tmp_path / "absent") == ()


def test_the_kept_authority_is_the_same_until_asked_for_a_new_one(tmp_path: Path) -> None:
    """C-06, DESIGN 7: a named one for the long-running proxy; `--new-ca`."""
    with Authority.named(tmp_path / "kept", now=NOW) as first:
        pass
    assert first.key_path.exists()
    second = Authority.named(tmp_path / "kept", now=NOW + timedelta(days=30))
    assert second.certificate == first.certificate
    assert second.certificate.not_valid_after_utc == NOW + KEPT_LIFETIME
    third = Authority.named(tmp_path / "kept", now=NOW, new=True)
    assert third.certificate.public_key() != first.certificate.public_key()
    assert stat.S_IMODE(third.key_path.stat().st_mode) == 0o600
    assert stat.S_IMODE(third.directory.stat().st_mode) == 0o700
    assert sweep(tmp_path) == ()


@pytest.mark.parametrize(("now", "recorded"), [(NOW + timedelta(days=350), None), (NOW, RECORDED)])
def test_a_renewed_kept_authority_is_still_trusted_by_older_shells(now: datetime, recorded: datetime | None, tmp_path: Path) -> None:
    """DESIGN 7: shells outlive the proxy; near its end, or for an older recording, the certificate is issued anew with its key."""
    first = Authority.named(tmp_path / "kept", now=NOW)
    later = Authority.named(tmp_path / "kept", now=now, not_before=recorded)
    assert later.certificate != first.certificate
    assert later.certificate.not_valid_before_utc <= min(now, recorded or now) - BACKDATED
    done = openssl_verify(first.ca_pem, later.leaf(["host.example"]), tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("damage", [b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"\xff" * 100])
def test_a_damaged_kept_authority_is_an_error_and_stays_as_it_is(damage: bytes, tmp_path: Path) -> None:
    """STYLE 4.6: unreadable is never absent."""
    path = Authority.named(tmp_path, now=NOW).key_path
    path.write_bytes(damage)
    with pytest.raises(Damaged, match="cannot be read") as raised:
        Authority.named(tmp_path, now=NOW)
    assert raised.value.hint is not None
    assert "--new-ca" in raised.value.hint
    assert path.read_bytes() == damage
    assert Authority.named(tmp_path, now=NOW, new=True).certificate


def test_key_and_certificate_of_two_authorities_are_damage(tmp_path: Path) -> None:
    """STYLE 4.6: a pair that does not belong together would make every handshake fail."""
    one, other = Authority.named(tmp_path / "a", now=NOW), Authority.named(tmp_path / "b", now=NOW)
    key = one.key_path.read_bytes().partition(b"-----BEGIN CERTIFICATE")[0]
    one.key_path.write_bytes(key + other.ca_pem)
    with pytest.raises(Damaged, match="do not belong together"):
        Authority.named(tmp_path / "a", now=NOW)


def test_the_programs_these_tests_need_are_here() -> None:
    """T-O4: curl and openssl judge the certificates; without them the tests above would prove nothing."""
    assert shutil.which("curl")
    assert shutil.which("openssl")
