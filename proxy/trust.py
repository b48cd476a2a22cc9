"""Whom we trust: the union of the system store, certifi, and every authority the user has configured for some tool.

Towards the origin this is the bundle origins are verified with (nothing is ever "insecure"); towards the agent the same and our
own authority, in one PEM file that all of the tools' variables name. An unreadable file is a warning: the user's other tools
ignore it as well, and the rest of the union still stands.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import ssl
import subprocess
import sys
import warnings
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import certifi
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.utils import CryptographyDeprecationWarning
from cryptography.x509.oid import NameOID

from secondtake.proxy.authority import ORGANIZATION
from secondtake.proxy.configs import Configs, expand, read_configs, read_file
from secondtake.proxy.variables import applied, undo

FILE_VARIABLES = (
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "npm_config_cafile",
    "NPM_CONFIG_CAFILE",
    "CARGO_HTTP_CAINFO",
    "CODEX_CA_CERTIFICATE",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
    "NIX_SSL_CERT_FILE",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "YARN_HTTPS_CA_FILE_PATH",
    "HTTPLIB2_CA_CERTS",
    "BUNDLE_SSL_CA_CERT",
    "COMPOSER_CAFILE",
    "HEX_CACERTS_PATH",
    "PERL_LWP_SSL_CA_FILE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "CONDA_SSL_VERIFY",
)
"""Variables that name a file of authorities (some tools take a folder there too)."""

FOLDER_VARIABLES = ("SSL_CERT_DIR", "GIT_SSL_CAPATH", "PERL_LWP_SSL_CA_PATH")
"""Variables that name folders, parted as in PATH."""

SYSTEM_FILES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/ssl/cert.pem",
)
"""Where the systems keep their store: Debian and Alpine, Fedora, RHEL, openSUSE, OpenELEC, macOS and BSD (as Go's crypto/x509 looks)."""

_PEM = re.compile(rb"-----BEGIN ((?:TRUSTED |X509 )?CERTIFICATE)-----\s*(.*?)-----END \1-----", re.DOTALL)
_SWITCHES = frozenset({"", "0", "1", "true", "false", "yes", "no"})
_FOLDER_FILES = 4096


@dataclass(frozen=True, slots=True)
class Trusted:
    """One trusted certificate and where it was first seen."""

    der: bytes = field(repr=False)
    source: str


@dataclass(frozen=True, slots=True)
class TrustSources:
    """All that is trusted without us, each certificate once, in a fixed order: system, certifi, then the user's."""

    authorities: tuple[Trusted, ...] = ()
    warnings: tuple[str, ...] = ()
    configs: Configs = field(default_factory=Configs)
    """What the tools' files say; `child_environment` needs to know whose proxy setting would go around us."""

    @property
    def counts(self) -> dict[str, int]:
        """How many certificates each source brought that no earlier one had."""
        found: dict[str, int] = {}
        for authority in self.authorities:
            found[authority.source] = found.get(authority.source, 0) + 1
        return found


type Keychain = Callable[[], Iterable[bytes]]
"""Certificates (DER) that are in no file: the keychain of macOS, the store of Windows."""


def collect(
    environ: Mapping[str, str],
    home: Path,
    cwd: Path,
    *,
    system_files: Iterable[str] = SYSTEM_FILES,
    root: Path = Path("/"),
    keychain: Keychain | None = None,
    certifi_file: str | None = None,
) -> TrustSources:
    """Gather the union. Reads files, asks the keychain where there is one, and never fails.

    In a shell that points at us, what the user had configured before counts.
    """
    environ = applied(undo(environ), environ)
    union = _Union()
    defaults = ssl.get_default_verify_paths()
    files = [*system_files, defaults.openssl_cafile]
    # Every one of them is read: where there are several, they may differ.
    read = [union.file(Path(file), "the system store", missing_ok=True) for file in dict.fromkeys(files)]
    if not any(read):
        union.folder(Path(defaults.openssl_capath), "the system store", missing_ok=True)
    union.ders((keychain or platform_keychain)(), "the system store")
    union.file(Path(certifi_file or certifi.where()), "certifi")
    for name in FILE_VARIABLES:
        if (value := environ.get(name, "").strip()).lower() not in _SWITCHES:
            union.either(expand(value, home, cwd), name)
    for name in FOLDER_VARIABLES:
        for part in environ.get(name, "").split(os.pathsep):
            if part.strip():
                union.folder(expand(part.strip(), home, cwd), name)
    configs = read_configs(environ, home, cwd, root=root)
    for setting in configs.certificates:
        union.either(Path(setting.value), f"{setting.key} in {setting.file}")
    for setting in configs.inline:
        union.pem(setting.value.encode(), f"{setting.key} in {setting.file}")
    return TrustSources(tuple(Trusted(der, source) for der, source in union.found.items()), (*configs.warnings, *union.warnings), configs)


def write_bundle(path: Path, sources: TrustSources, ca_pem: bytes) -> Path:
    """Write the agent's bundle: our authority first, then all others.

    First, because what reads only one certificate of a file (Java's keytool, one-line scripts) must find ours: it is the one that
    signs all that they will see.
    """
    return _write(path, [der for der, _ in certificates(ca_pem)], sources)


def write_java_store(path: Path, sources: TrustSources, ca_pem: bytes, password: str) -> Path:
    """Write the same union as a PKCS#12 trust store, the only form a JVM takes (`block(java=...)`)."""
    ders = [*(der for der, _ in certificates(ca_pem)), *(authority.der for authority in sources.authorities)]
    parsed = [certificate for der in ders if (certificate := _parsed(der)) is not None]
    encryption = serialization.BestAvailableEncryption(password.encode())
    named = [pkcs12.PKCS12Certificate(certificate, f"{number}".encode()) for number, certificate in enumerate(parsed)]
    return _store(path, pkcs12.serialize_java_truststore(named, encryption))


def upstream_bundle(path: Path, sources: TrustSources) -> Path:
    """Write the bundle that origins are verified with: all but our own authority."""
    return _write(path, [], sources)


def certificates(data: bytes, known: Container[bytes] = ()) -> Iterator[tuple[bytes, str | None]]:
    """Each certificate in `data` (PEM, also OpenSSL's trusted form, or one in DER): (DER, None), or (b"", what is wrong).

    What is `known` is not parsed again.
    """
    if data[:1] == b"\x30" and b"-----BEGIN" not in data:
        yield _checked(data)
        return
    for number, match in enumerate(_PEM.finditer(data), 1):
        try:
            raw = base64.b64decode(b"".join(match.group(2).split()), validate=True)
        except binascii.Error as error:
            yield b"", f"certificate {number}: {error}"
            continue
        if match.group(1).startswith(b"TRUSTED"):
            raw = raw[: _der_length(raw)]
        der, wrong = (raw, None) if raw in known else _checked(raw)
        yield der, wrong and f"certificate {number}: {wrong}"


def is_ours(der: bytes) -> bool:
    """Whether an authority of ours, of this run or another, is meant: known by its organization."""
    if ORGANIZATION.encode() not in der:
        return False
    certificate = _parsed(der)
    names = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME) if certificate is not None else []
    return any(name.value == ORGANIZATION for name in names)


def platform_keychain() -> Iterable[bytes]:
    """Roots that macOS and Windows keep outside files; nothing elsewhere."""
    if sys.platform == "darwin":
        chains = ("/System/Library/Keychains/SystemRootCertificates.keychain", "/Library/Keychains/System.keychain")
        found = subprocess.run(["/usr/bin/security", "find-certificate", "-a", "-p", *chains], capture_output=True, check=False, timeout=30)
        return [der for der, wrong in certificates(found.stdout) if wrong is None]
    if sys.platform == "win32":
        return [der for store in ("ROOT", "CA") for der, encoding, _ in ssl.enum_certificates(store) if encoding == "x509_asn"]
    return ()


class _Union:
    def __init__(self) -> None:
        self.found: dict[bytes, str] = {}
        self.warnings: list[str] = []

    def either(self, path: Path, source: str) -> None:
        if path.is_dir():
            self.folder(path, source)
        else:
            self.file(path, source)

    def file(self, path: Path, source: str, *, missing_ok: bool = False, quiet: bool = False) -> bool:
        try:
            data = read_file(path)
        except (FileNotFoundError, NotADirectoryError):
            if not missing_ok:
                self.warnings.append(f"{source} names {path}, which does not exist")
            return False
        except (OSError, ValueError) as error:
            self.warnings.append(f"{source}: cannot read {path}: {error}")
            return False
        return self.pem(data, f"{source}" if source.endswith(str(path)) else f"{source} ({path})", quiet=quiet)

    def folder(self, path: Path, source: str, *, missing_ok: bool = False) -> None:
        try:
            entries = sorted(path.iterdir())
        except OSError as error:
            if not (missing_ok and isinstance(error, FileNotFoundError)):
                self.warnings.append(f"{source}: cannot read {path}: {error.strerror or error}")
            return
        if len(entries) > _FOLDER_FILES:
            self.warnings.append(f"{source}: {path} holds {len(entries)} files; only the first {_FOLDER_FILES} are read")
        for entry in entries[:_FOLDER_FILES]:
            if entry.is_file():
                self.file(entry, source, missing_ok=True, quiet=True)

    def pem(self, data: bytes, source: str, *, quiet: bool = False) -> bool:
        any_found = False
        for der, wrong in certificates(data, self.found):
            if wrong is None:
                any_found = True
                self.add(der, source)
            else:
                self.warnings.append(f"{source}: {wrong}")
        if not any_found and not quiet:
            self.warnings.append(f"{source}: no certificate in it")
        return any_found

    def ders(self, ders: Iterable[bytes], source: str) -> None:
        for der in ders:
            if _checked(der)[1] is None:
                self.add(der, source)

    def add(self, der: bytes, source: str) -> None:
        """Never one of our own: in a shell that points at us the variables name our bundle, and no origin is to be believed by it."""
        if not is_ours(der):
            self.found.setdefault(der, source)


def _checked(der: bytes) -> tuple[bytes, str | None]:
    """One bad certificate spoils a whole file for some readers (Node, GnuTLS), so each is read here first."""
    if _parsed(der) is not None:
        return der, None
    # Some old roots break rules that OpenSSL does not mind (it takes 3 ms each, hence second); the tools take what it takes.
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=der)
    except (ssl.SSLError, ValueError) as error:
        return b"", getattr(error, "reason", None) or str(error)
    return der, None


def _parsed(der: bytes) -> x509.Certificate | None:
    with warnings.catch_warnings():
        # Public bundles hold roots with serial numbers that are not positive.
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        try:
            return x509.load_der_x509_certificate(der)
        except ValueError:
            return None


def _der_length(data: bytes) -> int:
    """Length of the first DER value (X.690, 8.1.3), to cut off what OpenSSL's trusted form adds."""
    if len(data) < 2 or data[1] < 0x80:
        return 2 + (data[1] if len(data) > 1 else 0)
    size = data[1] & 0x7F
    return 2 + size + int.from_bytes(data[2 : 2 + size])


def _write(path: Path, first: list[bytes], sources: TrustSources) -> Path:
    ders = dict.fromkeys([*first, *(authority.der for authority in sources.authorities)])
    return _store(path, "".join(ssl.DER_cert_to_PEM_cert(der) for der in ders).encode())


def _store(path: Path, data: bytes) -> Path:
    """Created beside, mode 0600 whatever the umask, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    fd = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        os.fchmod(fd, 0o600)
        file.write(data)
    beside.replace(path)
    return path
