"""The certificate authority that signs what the agent sees: one per run, or one that the long-running proxy keeps.

EC P-256, path length 0, in a directory of mode 0700, its key in a file of mode 0600 that is created, never overwritten. The
directory has the layout that mitmproxy calls a `confdir`. A run's authority lives as long as a file lock that the kernel drops
with the process, so that the next start can tell a dead run's directory (`sweep`) from a living one's.

* AuthorityError           the base of what this module raises
  - Damaged                the kept authority cannot be read; it is never replaced silently
"""

from __future__ import annotations

import fcntl
import ipaddress
import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from secondtake.cassettes.errors import RecordedError

if TYPE_CHECKING:
    from collections.abc import Iterator

BACKDATED = timedelta(days=2)
"""How long before the earlier of now and the recorded start a certificate begins to be valid; forgives a wrong clock."""

RUN_LIFETIME = timedelta(days=7)
"""A run's authority outlives any run by this margin at most; it is deleted when the run ends."""

KEPT_LIFETIME = timedelta(days=365)
"""The kept authority of `proxy`: shells that trust it outlive the process."""

KEPT_RENEWED = timedelta(days=30)
"""A kept authority with less than this left is issued anew, with the same key, so that older bundles go on working."""

ORGANIZATION = "secondtake"
"""In the subject of every authority of ours; such a one is never trusted towards an origin."""

CA_FILE = "mitmproxy-ca.pem"
"""Key and certificate. The name is mitmproxy's: options.CONF_BASENAME + "-ca.pem"."""

CA_CERTIFICATE = "mitmproxy-ca-cert.pem"
_RUN_PREFIX = "ca-"
_LOCK = "lock"
_SWEEP_LOCK = ".ca-lock"
_LONGEST_COMMON_NAME = 63


class AuthorityError(RecordedError):
    """Base of what this module raises."""


class Damaged(AuthorityError):
    """The kept authority cannot be read."""


@dataclass(frozen=True, slots=True)
class Validity:
    """From when to when, in UTC; whole seconds, as certificates have no finer time."""

    start: datetime
    stop: datetime

    @classmethod
    def of(cls, *, now: datetime, recorded: datetime | None, lifetime: timedelta) -> Self:
        """Valid both at the real clock and at a clock frozen at the recorded start."""
        earliest = now if recorded is None else min(now, recorded)
        return cls((earliest - BACKDATED).astimezone(UTC).replace(microsecond=0), (now + lifetime).astimezone(UTC).replace(microsecond=0))


@dataclass(frozen=True, slots=True)
class Leaf:
    """A server certificate and its key. The key is not the authority's."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        """Key and certificate in one, as a server loads them."""
        return _key_pem(self.key) + self.certificate.public_bytes(serialization.Encoding.PEM)


class Authority:
    """Signs leaf certificates for one proxy. Use as a context manager, or call `remove` (a run) or `release` (a kept one)."""

    def __init__(
        self,
        directory: Path,
        key: ec.EllipticCurvePrivateKey,
        certificate: x509.Certificate,
        *,
        validity: Validity,
        lock_fd: int | None,
        kept: bool,
    ) -> None:
        self.directory = directory
        """mitmproxy's `confdir`."""
        self.certificate = certificate
        self.kept = kept
        self._key = key
        self._validity = validity
        self._lock_fd = lock_fd
        self._leaf_key = ec.generate_private_key(ec.SECP256R1())

    @classmethod
    def create(
        cls,
        parent: Path,
        *,
        now: datetime,
        not_before: datetime | None = None,
        only_hosts: Iterable[str] = (),
        lifetime: timedelta = RUN_LIFETIME,
    ) -> Authority:
        """Make a run's authority in a new directory inside `parent`.

        `now` and `not_before` are aware times; `not_before` is the recorded start where there is one (two days are taken off
        here). `only_hosts` constrains the authority to these names, their subdomains, and these addresses.
        """
        with _creating(parent):
            directory = Path(tempfile.mkdtemp(prefix=_RUN_PREFIX, dir=parent))
            lock_fd = os.open(directory / _LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(lock_fd, fcntl.LOCK_EX)
        validity = Validity.of(now=now, recorded=not_before, lifetime=lifetime)
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _issue_authority(key, f"secondtake run {directory.name.removeprefix(_RUN_PREFIX)}", validity, tuple(only_hosts))
        _keep(directory, key, certificate)
        return cls(directory, key, certificate, validity=validity, lock_fd=lock_fd, kept=False)

    @classmethod
    def named(cls, directory: Path, *, now: datetime, not_before: datetime | None = None, new: bool = False) -> Authority:
        """Open the kept authority in `directory`, making it where there is none; `new` replaces it by another key.

        Where its time does not cover what is asked, or runs out within `KEPT_RENEWED`, the certificate is issued anew with the
        same name and key: a bundle that holds the former one still verifies.

        Raises:
            Damaged: the files are there and cannot be used.
        """
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        directory.chmod(0o700)
        with _creating(directory):
            path = directory / CA_FILE
            if new or not path.exists():
                validity = Validity.of(now=now, recorded=not_before, lifetime=KEPT_LIFETIME)
                key = ec.generate_private_key(ec.SECP256R1())
                name = f"secondtake proxy {x509.random_serial_number() & 0xFFFFFFFF:08x}"
                certificate = _issue_authority(key, name, validity, ())
                _keep(directory, key, certificate)
            else:
                key, certificate = _load(path)
                wanted = Validity.of(now=now, recorded=not_before, lifetime=KEPT_RENEWED)
                start, stop = certificate.not_valid_before_utc, certificate.not_valid_after_utc
                if start > wanted.start or stop < wanted.stop:
                    renewed = Validity.of(now=now, recorded=not_before, lifetime=KEPT_LIFETIME)
                    validity = Validity(min(start, renewed.start), max(stop, renewed.stop))
                    certificate = _issue_authority(key, _common_name(certificate), validity, ())
                    _keep(directory, key, certificate)
                else:
                    validity = Validity(start, stop)
        return cls(directory, key, certificate, validity=validity, lock_fd=None, kept=True)

    @property
    def ca_pem(self) -> bytes:
        """The certificate, for bundles. Never the key."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def ca_path(self) -> Path:
        """The certificate alone, in PEM."""
        return self.directory / CA_CERTIFICATE

    @property
    def key_path(self) -> Path:
        """The file that holds the key; nothing but mitmproxy's start reads it."""
        return self.directory / CA_FILE

    def leaf(self, names: Iterable[str]) -> Leaf:
        """Sign a certificate for these host names and addresses (brackets, zones and a final dot are taken off)."""
        wanted = general_names(names)
        first = next((name.value for name in wanted if isinstance(name, x509.DNSName)), "")
        common = first if 0 < len(first) <= _LONGEST_COMMON_NAME else "secondtake"
        issuer_id = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        builder = (
            x509.CertificateBuilder()
            .issuer_name(self.certificate.subject)
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)]))
            .public_key(self._leaf_key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(self._validity.start)
            .not_valid_after(self._validity.stop)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_id), critical=False)
        )
        if wanted:
            builder = builder.add_extension(x509.SubjectAlternativeName(wanted), critical=False)
        return Leaf(builder.sign(self._key, hashes.SHA256()), self._leaf_key)

    def remove(self) -> None:
        """Delete a run's authority; a kept one stays. Safe to call twice."""
        if not self.kept:
            _delete(self.directory)
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def sweep(parent: Path) -> tuple[Path, ...]:
    """Delete the run authorities in `parent` whose process is gone (after SIGKILL); return what was deleted."""
    if not parent.is_dir():
        return ()
    gone: list[Path] = []
    with _creating(parent):
        for directory in sorted(parent.glob(f"{_RUN_PREFIX}*")):
            if directory.is_symlink() or not directory.is_dir():
                continue
            if _is_dead(directory):
                _delete(directory)
                gone.append(directory)
    return tuple(gone)


def general_names(names: Iterable[str]) -> list[x509.GeneralName]:
    """The names as a certificate holds them, each once, in order; what can stand in none is left out."""
    found: dict[x509.GeneralName, None] = {}
    for name in names:
        bare = name.strip().removeprefix("[").removesuffix("]").partition("%")[0].rstrip(".")
        try:
            found[x509.IPAddress(ipaddress.ip_address(bare))] = None
        except ValueError:
            if encoded := _dns(bare):
                found[x509.DNSName(encoded)] = None
    return list(found)


def _dns(name: str) -> str | None:
    """A-labels where the name is not ASCII; None where it cannot be a DNS name at all."""
    if not name or len(name) > 253:
        return None
    try:
        return name.encode("ascii").decode().lower() if name.isascii() else name.encode("idna").decode()
    except UnicodeError:
        return None


def _issue_authority(
    key: ec.EllipticCurvePrivateKey, common_name: str, validity: Validity, only_hosts: tuple[str, ...]
) -> x509.Certificate:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name), x509.NameAttribute(NameOID.ORGANIZATION_NAME, ORGANIZATION)])
    builder = (
        x509.CertificateBuilder()
        .issuer_name(name)
        .subject_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(validity.start)
        .not_valid_after(validity.stop)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if only_hosts:
        builder = builder.add_extension(_constraints(only_hosts), critical=True)
    return builder.sign(key, hashes.SHA256())


def _constraints(hosts: tuple[str, ...]) -> x509.NameConstraints:
    """RFC 5280, 4.2.1.10: a kind of name that is not mentioned is unconstrained, so each kind is mentioned."""
    named = general_names(host.removeprefix("*").removeprefix(".") for host in hosts)
    permitted: list[x509.GeneralName] = [
        x509.IPAddress(ipaddress.ip_network(name.value)) if isinstance(name, x509.IPAddress) else name for name in named
    ]
    excluded: list[x509.GeneralName] = []
    if not any(isinstance(name, x509.DNSName) for name in permitted):
        permitted.append(x509.DNSName("invalid"))
    if not any(isinstance(name, x509.IPAddress) for name in permitted):
        excluded.extend(x509.IPAddress(ipaddress.ip_network(everything)) for everything in ("0.0.0.0/0", "::/0"))
    return x509.NameConstraints(permitted_subtrees=permitted, excluded_subtrees=excluded or None)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _common_name(certificate: x509.Certificate) -> str:
    value = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    return value if isinstance(value, str) else value.decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


def _keep(directory: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    _write(directory / CA_FILE, _key_pem(key) + pem)
    _write(directory / CA_CERTIFICATE, pem)


def _write(path: Path, data: bytes) -> None:
    """Create beside, mode 0600 whatever the umask, then rename: a reader sees the former file or the whole new one."""
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    fd = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        os.fchmod(fd, 0o600)
        file.write(data)
        file.flush()
        os.fsync(fd)
    beside.replace(path)


def _load(path: Path) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    hint = "make another with `secondtake proxy … --new-ca`; shells that trust this one then need `secondtake env` again"
    try:
        data = path.read_bytes()
        key = serialization.load_pem_private_key(data, None)
        certificate = x509.load_pem_x509_certificate(data)
    except (OSError, ValueError, TypeError) as error:
        raise Damaged(f"the kept certificate authority cannot be read: {path}: {error}", hint=hint) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or certificate.public_key() != key.public_key():
        raise Damaged(f"key and certificate of the kept authority do not belong together: {path}", hint=hint)
    return key, certificate


@contextmanager
def _creating(parent: Path) -> Iterator[None]:
    """One process at a time creates or sweeps in `parent`, so that a directory not yet locked is never swept."""
    parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fd = os.open(parent / _SWEEP_LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _delete(directory: Path) -> None:
    """The key first, the lock last: a kill in between leaves what the next sweep still knows as dead."""
    with suppress(OSError):
        (directory / CA_FILE).unlink(missing_ok=True)
        for entry in directory.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != _LOCK:
                entry.unlink(missing_ok=True)
        (directory / _LOCK).unlink(missing_ok=True)
        directory.rmdir()


def _is_dead(directory: Path) -> bool:
    """No lock file: its creator died between two lines. A lock that can be taken: the kernel gave it up with the process."""
    try:
        fd = os.open(directory / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        # Only our own half-made or half-removed directories: nothing but the files this module writes.
        return all(entry.name in {CA_FILE, CA_CERTIFICATE} or entry.name.startswith("mitmproxy-") for entry in directory.iterdir())
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True
