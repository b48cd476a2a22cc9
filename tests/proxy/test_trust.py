"""The union of all that the user trusts."""

from __future__ import annotations

import os
import shutil
import ssl
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.proxy.authority import ORGANIZATION, Authority
from secondtake.proxy.environment import child_environment
from secondtake.proxy.trust import FILE_VARIABLES, TrustSources, certificates, collect, upstream_bundle, write_bundle, write_java_store

NOW = datetime.now(UTC)


class Corporation:
    """Makes self-signed authorities that are not ours."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.count = 0

    def pem(self) -> str:
        self.count += 1
        subject = f"/O=Corporation/CN=Root {self.count}"
        arguments = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        made = subprocess.run([*arguments, "-subj", subject, "-keyout", os.devnull], capture_output=True, text=True, check=True)
        return made.stdout[made.stdout.index("-----BEGIN") :]

    def file(self, name: str) -> Path:
        path = self.folder / name
        path.write_text(self.pem())
        return path


@pytest.fixture
def corporation(tmp_path: Path) -> Corporation:
    return Corporation(tmp_path)


@pytest.fixture
def authority(tmp_path: Path) -> Iterator[Authority]:
    with Authority.create(tmp_path / "runs", now=NOW) as made:
        yield made


def gather(home: Path, environ: dict[str, str] | None = None, system: list[Path] | None = None) -> TrustSources:
    """With an empty system store and certifi, so that what is found is what the test put there."""
    empty = home / "certifi.pem"
    if not empty.exists():
        empty.write_text("")
    files = [str(path) for path in system or []]
    sources = collect(environ or {}, home, home, system_files=files, root=home, keychain=lambda: (), certifi_file=str(empty))
    return replace(sources, warnings=tuple(line for line in sources.warnings if not line.startswith("certifi")))


def ders(*files: Path) -> list[bytes]:
    return [der for file in files for der, wrong in certificates(file.read_bytes()) if wrong is None]


@pytest.fixture(autouse=True)
def _no_openssl_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What Python's own OpenSSL has for a store is the machine's; here there is none."""
    nowhere = str(tmp_path / "nowhere")
    missing: Any = None  # what Python gives where a default does not exist; its types say otherwise
    paths = ssl.DefaultVerifyPaths(missing, missing, "SSL_CERT_FILE", nowhere, "SSL_CERT_DIR", nowhere)
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)


def found(sources: TrustSources) -> list[bytes]:
    return [each.der for each in sources.authorities]


@pytest.mark.parametrize("name", FILE_VARIABLES)
def test_each_variable_that_names_a_file_brings_its_authorities(name: str, corporation: Corporation, tmp_path: Path) -> None:
    """DESIGN 3: every CA the user already configured."""
    path = corporation.file("corp root.pem")
    assert found(gather(tmp_path, {name: str(path)})) == ders(path)
    assert found(gather(tmp_path, {name: "~/corp root.pem"})) == ders(path)


def test_folders_and_configuration_files_are_part_of_the_union(corporation: Corporation, tmp_path: Path) -> None:
    """DESIGN 3: SSL_CERT_DIR, and pip, npm, git, cargo configuration."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    files = [corporation.file("one/b.crt"), corporation.file("one/a1b2c3d4.0"), corporation.file("two/c.pem")]
    (tmp_path / "one" / "README").write_text("no certificate, and no warning")
    configured = {tool: corporation.file(f"{tool}.pem") for tool in ("pip", "npm", "git", "cargo")}
    inline = corporation.pem()
    (tmp_path / ".pip").mkdir()
    (tmp_path / ".pip/pip.conf").write_text(f"[global]\ncert = {configured['pip']}\n")
    (tmp_path / ".npmrc").write_text(
        f'cafile={configured["npm"]}\nca="{inline.strip()}"\n'.replace("\n", "\\n").replace('\\nca="', '\nca="')
    )
    (tmp_path / ".gitconfig").write_text(f"[http]\nsslCAInfo = {configured['git']}\n")
    (tmp_path / ".cargo").mkdir()
    (tmp_path / ".cargo/config.toml").write_text(f'[http]\ncainfo = "{configured["cargo"]}"\n')
    sources = gather(tmp_path, {"SSL_CERT_DIR": f"{tmp_path}/one{os.pathsep}{tmp_path}/two{os.pathsep}"})
    assert sources.warnings == ()
    wanted = [files[1], files[0], files[2], *(configured[tool] for tool in ("pip", "npm", "git", "cargo"))]
    assert found(sources)[: len(wanted)] == ders(*wanted)
    assert found(sources)[len(wanted) :] == [der for der, _ in certificates(inline.encode())]


def test_each_certificate_is_there_once_in_a_fixed_order(corporation: Corporation, tmp_path: Path) -> None:
    """T-R13: the same on every run; deduplicated by DER, whatever the text around it."""
    one, two = corporation.file("one.pem"), corporation.file("two.pem")
    system = tmp_path / "system.pem"
    system.write_text(f"# a comment\n{two.read_text()}\nsubject=x\n{one.read_text()}".replace("\n", "\r\n"))
    environ = {"SSL_CERT_FILE": str(one), "CURL_CA_BUNDLE": str(two), "AWS_CA_BUNDLE": str(one)}
    sources = gather(tmp_path, environ, [system])
    assert found(sources) == ders(two, one)
    assert sources.counts == {f"the system store ({system})": 2}
    assert gather(tmp_path, dict(reversed(environ.items())), [system]) == sources


@pytest.mark.parametrize(
    ("content", "warning"),
    [
        (b"", "no certificate in it"),
        (b"not a certificate", "no certificate in it"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate 1"),
        (b"-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n", "certificate 1"),
        (b"-----BEGIN CERTIFICATE-----\nMIIB", "no certificate in it"),
        (b"\x30\x03\x02\x01\x01", "no certificate in it"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "no certificate in it"),
    ],
)
def test_a_broken_file_is_a_warning_and_the_rest_stands(content: bytes, warning: str, corporation: Corporation, tmp_path: Path) -> None:
    """DESIGN 3: broken files are warnings, not errors."""
    broken, good = tmp_path / "broken.pem", corporation.file("good.pem")
    broken.write_bytes(content)
    sources = gather(tmp_path, {"SSL_CERT_FILE": str(broken), "REQUESTS_CA_BUNDLE": str(good)})
    assert found(sources) == ders(good)
    assert any("SSL_CERT_FILE" in line and warning in line for line in sources.warnings), sources.warnings


def test_one_bad_certificate_in_a_bundle_does_not_spoil_the_others(corporation: Corporation, tmp_path: Path) -> None:
    """Node and GnuTLS drop a whole file for one bad entry; the bundle that we write has none."""
    first, last = corporation.pem(), corporation.pem()
    (tmp_path / "mixed.pem").write_text(f"{first}-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n{last}")
    sources = gather(tmp_path, {"SSL_CERT_FILE": str(tmp_path / "mixed.pem")})
    assert len(sources.authorities) == 2
    assert len(sources.warnings) == 1
    written = upstream_bundle(tmp_path / "out.pem", sources)
    assert ders(written) == found(sources)


def test_missing_unreadable_and_endless_files_are_warnings(tmp_path: Path) -> None:
    """Hostile input: a pipe, a device, a folder loop; nothing waits and nothing raises."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    environ = {
        "SSL_CERT_FILE": "/absent.pem",
        "PIP_CERT": f"{tmp_path}/pipe",
        "AWS_CA_BUNDLE": "/dev/zero",
        "DENO_CERT": f"{tmp_path}/loop",
    }
    sources = gather(tmp_path, {**environ, "SSL_CERT_DIR": "/absent-folder", "CURL_CA_BUNDLE": "a\0b", "CONDA_SSL_VERIFY": "true"})
    assert sources.authorities == ()
    for name in (*environ, "SSL_CERT_DIR", "CURL_CA_BUNDLE"):
        assert sum(line.startswith(name) for line in sources.warnings) == 1, (name, sources.warnings)
    assert not any("CONDA" in line for line in sources.warnings)


def test_other_writings_of_a_certificate_are_read(corporation: Corporation, tmp_path: Path) -> None:
    """DER, OpenSSL's trusted form, and the X509 label."""
    pem = corporation.file("root.pem")
    (der,) = ders(pem)
    trusted = subprocess.run(
        ["openssl", "x509", "-in", str(pem), "-trustout", "-addtrust", "serverAuth"], capture_output=True, text=True, check=True
    ).stdout
    assert "TRUSTED" in trusted
    for content in (der, trusted.encode(), pem.read_bytes().replace(b"CERTIFICATE", b"X509 CERTIFICATE")):
        (tmp_path / "other").write_bytes(content)
        assert found(gather(tmp_path, {"SSL_CERT_FILE": str(tmp_path / "other")})) == [der]


def test_our_authority_comes_first_downwards_and_never_upwards(corporation: Corporation, authority: Authority, tmp_path: Path) -> None:
    """DESIGN 3: what reads only the first certificate finds ours; C-07: an origin is never believed by an authority of ours."""
    user = corporation.file("corp.pem")
    bundle = write_bundle(tmp_path / "out" / "bundle.pem", gather(tmp_path, {"SSL_CERT_FILE": str(user)}), authority.ca_pem)
    ours = ders(authority.ca_path)
    assert ders(bundle) == [*ours, *ders(user)]
    # A shell that points at us: its variables name our bundle.
    again = gather(tmp_path, {"SSL_CERT_FILE": str(bundle), "REQUESTS_CA_BUNDLE": str(authority.ca_path)})
    assert ders(upstream_bundle(tmp_path / "up.pem", again)) == ders(user)
    assert again.warnings == ()


def test_in_a_pointed_shell_the_users_former_settings_count(corporation: Corporation, tmp_path: Path) -> None:
    """T-R12: our bundle of a run that is over is gone; the company's root is still trusted."""
    user = corporation.file("corp.pem")
    shell = child_environment({"REQUESTS_CA_BUNDLE": str(user)}, port=1, bundle=tmp_path / "gone.pem", former=True)
    sources = gather(tmp_path, shell)
    assert found(sources) == ders(user)
    assert sources.warnings == ()


def test_a_corporation_of_our_name_in_another_place_is_not_ours(tmp_path: Path) -> None:
    """Only the subject's organization counts, not the bytes anywhere."""
    arguments = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj"]
    for subject, kept in ((f"/O=Corp/CN={ORGANIZATION} fans", 1), (f"/O={ORGANIZATION}/CN=x", 0)):
        made = subprocess.run(
            [*arguments, subject, "-keyout", os.devnull, "-out", str(tmp_path / "c.pem")], capture_output=True, check=False
        )
        assert made.returncode == 0
        assert len(gather(tmp_path, {"SSL_CERT_FILE": str(tmp_path / "c.pem")}).authorities) == kept


def test_bundles_are_private_and_replaced_whole(authority: Authority, tmp_path: Path) -> None:
    """C-18: 0600 whatever the umask, no file half written beside."""
    before = os.umask(0)
    try:
        path = write_bundle(tmp_path / "b" / "bundle.pem", gather(tmp_path), authority.ca_pem)
        write_bundle(path, gather(tmp_path), authority.ca_pem)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["bundle.pem"]


def test_openssl_takes_the_whole_bundle_of_this_machine(authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """T-O4: system store and certifi, as they are here."""
    monkeypatch.undo()
    sources = collect({}, tmp_path, tmp_path)
    bundle = write_bundle(tmp_path / "bundle.pem", sources, authority.ca_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(bundle)
    assert context.cert_store_stats()["x509"] == len(sources.authorities) + 1 > 100


@pytest.mark.skipif(shutil.which("keytool") is None, reason="no keytool (Java) on PATH")
def test_java_takes_the_trust_store(authority: Authority, corporation: Corporation, tmp_path: Path) -> None:
    """T-O4: a JVM reads PKCS#12, with every certificate marked as trusted."""
    sources = gather(tmp_path, {"SSL_CERT_FILE": str(corporation.file("corp.pem"))})
    store = write_java_store(tmp_path / "trust.p12", sources, authority.ca_pem, "changeit")
    listed = subprocess.run(
        ["keytool", "-list", "-keystore", str(store), "-storepass", "changeit", "-J-Duser.language=en"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert listed.stdout.count("trustedCertEntry") == 2, listed.stdout + listed.stderr


@given(st.binary(max_size=300))
def test_no_bytes_raise(data: bytes) -> None:
    """Hostile input: any file."""
    for form in (
        data,
        b"0" + data,
        b"-----BEGIN TRUSTED CERTIFICATE-----\n" + data.hex().encode() + b"\n-----END TRUSTED CERTIFICATE-----",
    ):
        for der, wrong in certificates(form):
            assert (der == b"") is (wrong is not None)
