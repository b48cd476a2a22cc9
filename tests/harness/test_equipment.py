"""What every run needs around its proxy."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pytest

from secondtake.cassettes.errors import NotStored
from secondtake.harness.equipment import credential_variables, dummies, equipped, made_credential
from secondtake.harness.plan import Place, Stage
from secondtake.harness.running import run_directory
from tests.harness.stages import stage_in


@pytest.fixture
def stage(tmp_path: Path) -> Callable[..., Stage]:
    """A world whose clock stands."""
    return partial(stage_in, tmp_path)


def test_a_run_leaves_nothing_but_the_stores_key(stage: Callable[..., Stage], tmp_path: Path) -> None:
    """C-06: the authority of a run is gone with it."""
    with equipped(stage()) as equipment:
        assert equipment.bundle.read_bytes().startswith(b"-----BEGIN CERTIFICATE-----")
        assert equipment.authority.ca_pem.splitlines()[1] in equipment.bundle.read_bytes()
        assert equipment.authority.ca_pem.splitlines()[1] not in equipment.origins.read_bytes()
    assert [path.name for path in run_directory(tmp_path / "store").iterdir() if not path.name.startswith(".")] == []
    assert sorted(path.name for path in (tmp_path / "store").iterdir()) == ["key", "run"]


def test_the_authority_of_a_proxy_stays_until_a_new_one_is_asked_for(stage: Callable[..., Stage]) -> None:
    """DESIGN 7: `proxy` keeps a named one in the store, because shells outlive it; --new-ca."""
    with equipped(stage(), kept=True) as first:
        kept = first.authority.ca_pem
    with equipped(stage(), kept=True) as again:
        assert again.authority.ca_pem == kept
    with equipped(stage(), kept=True, new_ca=True) as fresh:
        assert fresh.authority.ca_pem != kept


def test_a_store_that_cannot_be_made_is_said_to_be_so(stage: Callable[..., Stage], tmp_path: Path) -> None:
    """Issue 2, bad input: one line and a hint. DESIGN 4: a replay needs no store that can be written."""
    (tmp_path / "store").write_text("a file")
    with pytest.raises(NotStored) as raised, equipped(stage()):
        pass
    assert raised.value.hint == "give another --store DIR"
    with equipped(stage(), reading=True) as equipment:
        assert equipment.bundle.exists()


def test_a_child_is_told_of_us_and_of_nothing_that_leads_around_us(stage: Callable[..., Stage]) -> None:
    """DESIGN 3: the child's NO_PROXY is replaced, other proxies go."""
    with equipped(stage(NO_PROXY="example", ALL_PROXY="http://192.0.2.1:1", KEPT="x", HTTPS_PROXY="http://192.0.2.1:1")) as equipment:
        child = equipment.child(4321)
    assert child["HTTPS_PROXY"] == child["http_proxy"] == "http://127.0.0.1:4321"
    assert child["NO_PROXY"] == "localhost,127.0.0.1,::1"
    assert child["KEPT"] == "x"
    assert "ALL_PROXY" not in child
    assert child["SSL_CERT_FILE"] == child["GIT_SSL_CAINFO"] == str(equipment.bundle)


def test_our_own_values_stand_in_the_keys_by_name(stage: Callable[..., Stage], tmp_path: Path) -> None:
    """DESIGN 3: everything we put into the child's environment is named in the key; a short directory is left, it stands in other words."""
    with equipped(stage()) as equipment:
        aliases = equipment.aliases(4321, tmp_path)
        text = f"http://127.0.0.1:4321 {equipment.bundle} {tmp_path}/code.py".encode()
        assert aliases.replace(text) == b"{SECONDTAKE_PROXY} {SECONDTAKE_BUNDLE} {WORKSPACE}/code.py"
        assert equipment.aliases(4321, Path("/app")).replace(b"/application") == b"/application"


def test_workspace_and_home_stand_in_the_keys_by_name_and_so_do_folders_named_after_them(stage: Callable[..., Stage]) -> None:
    """AGENTS 2, 5.4: a run in another workspace and home is the same run; the workspace may be inside the home."""
    with equipped(replace(stage(), home=Path("/home/me"))) as equipment:
        aliases = equipment.aliases(1, Path("/home/me/my.project"))
    text = b"/home/me/my.project/a ~=/home/me/.claude/projects/-home-me-my-project/memory"
    assert aliases.replace(text) == b"{WORKSPACE}/a ~={HOME}/.claude/projects/{WORKSPACE_SLUG}/memory"
    with equipped(replace(stage(), home=Path("/root"))) as equipment:
        aliases = equipment.aliases(1, Path("/app"))
    assert (
        aliases.replace(b"/app/x /root/.claude/projects/-app/m -root")
        == b"{WORKSPACE}/x {HOME}/.claude/projects/{WORKSPACE_SLUG}/m {HOME_SLUG}"
    )


def test_only_missing_credentials_get_a_dummy() -> None:
    """C-13: a replay with no credentials at all works; one that is there is used."""
    assert credential_variables({"PROVIDER_API_KEY": "sk-0123456789abcdef", "EMPTY_API_KEY": "", "HOME": "/x"}) == ["PROVIDER_API_KEY"]
    given = dummies(["A_API_KEY", "B_API_KEY"], {"A_API_KEY": "real"})
    assert list(given) == ["B_API_KEY"]


def test_a_made_credential_has_128_random_bits() -> None:
    """C-03: where the peer cannot be known, a random per-run credential is asked."""
    user, _, secret = made_credential(Random(1)).partition(":")
    assert (user, len(secret)) == ("secondtake", 32)
    assert made_credential(Random(1)) != made_credential(Random(2))


def test_the_password_of_the_way_out_and_the_dummies_are_known_to_the_redactor(stage: Callable[..., Stage]) -> None:
    """C-09, C-13: what we send upstream, and what we put into the child's environment, in whatever spelling an agent shows it."""
    given = {"HTTPS_PROXY": "http://me:p%40ssw0rd-1234@proxy.example:3128", **dummies(["OPENAI_API_KEY"], {})}
    with equipped(stage(**given)) as equipment:
        for secret in ("p@ssw0rd-1234", base64.b64encode(b"me:p@ssw0rd-1234").decode(), given["OPENAI_API_KEY"]):
            assert secret not in equipment.redactor.text(f"seen: {secret} .")


def test_off_loopback_a_proxy_has_a_credential_and_a_name(stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 7: off loopback a proxy credential is asked; SECURITY C-03."""
    monkeypatch.setattr("socket.gethostname", lambda: "box")
    with equipped(stage(), kept=True, place=Place("0.0.0.0")) as equipment:
        assert (equipment.listen, equipment.reached_as, equipment.address(80)) == ("0.0.0.0", "box", "box:80")
        assert equipment.credential is not None
        assert equipment.child(80)["HTTPS_PROXY"] == f"http://{equipment.credential}@box:80"
        assert equipment.aliases(80, Path("/")).replace(b"to box:80") == b"to {SECONDTAKE_ADDRESS}"
    with equipped(stage(), kept=True, place=Place("192.0.2.7")) as equipment:
        assert (equipment.reached_as, equipment.credential is None) == ("192.0.2.7", False)
    with equipped(stage(), kept=True, place=Place("::", reached_as="2001:db8::1")) as equipment:
        assert equipment.address(80) == "[2001:db8::1]:80"
    with equipped(stage(), kept=True, place=Place()) as equipment:
        assert (equipment.address(80), equipment.credential) == ("127.0.0.1:80", None)


def test_a_bundle_is_shared_with_agents_elsewhere(stage: Callable[..., Stage], tmp_path: Path) -> None:
    """Issue 5: a container sees the certificates, and nothing else of the store."""
    shared = tmp_path / "shared"
    shared.mkdir()
    with equipped(stage(), kept=True, place=Place(share=shared)) as equipment:
        assert equipment.bundle == shared / "bundle.pem"
        assert equipment.child(80)["SSL_CERT_FILE"] == str(shared / "bundle.pem")
    assert [path.name for path in shared.iterdir()] == ["bundle.pem"]
    assert (shared / "bundle.pem").stat().st_mode & 0o777 == 0o644
    with pytest.raises(NotStored, match="cannot be put into"), equipped(stage(), kept=True, place=Place(share=tmp_path / "missing")):
        pass
