"""Files that hold credentials by their name."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.credential_files import kind_of, masked, scope_of


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (b".env", "dotenv"),
        (b"app/.env.local", "dotenv"),
        (b"prod.env", "dotenv"),
        (b".envrc", "dotenv"),
        (b".npmrc", "npmrc"),
        (b".netrc", "netrc"),
        (b".codex/auth.json", "auth-json"),
        (b".claude/.credentials.json", "auth-json"),
        (b".git-credentials", "git-credentials"),
        (b".kube/config", "kubeconfig"),
        (b".aws/credentials", "cloud-profile"),
        (b".aws/sso/cache/x.json", "cloud-profile"),
        (b".config/gcloud/access_tokens.db", "cloud-profile"),
        (b".ssh/id_rsa", "ssh-key"),
        (b"keys/id_ed25519", "ssh-key"),
        (b".ssh/work", "ssh-key"),
        (b"cert.p12", "key-store"),
        (b".docker/config.json", "docker-config"),
        (b".env.example", None),
        (b".env.sample", None),
        (b"example.env", None),
        (b".ssh/config", None),
        (b".ssh/id_rsa.pub", None),
        (b".aws/config", None),
        (b"src/env.py", None),
        (b"environment", None),
        (b"config.json", None),
    ],
)
def test_a_file_is_known_by_its_name(path: bytes, kind: str | None) -> None:
    """DESIGN 4: `.env`, `.npmrc`, `.netrc`, `auth.json`, kubeconfig, cloud profiles; not what is made to be shared."""
    assert kind_of(path) == kind


@given(st.binary(max_size=200), st.sampled_from(["dotenv", "npmrc", "auth-json"]))
def test_what_stands_for_it_is_as_long_and_doing_it_twice_is_doing_it_once(content: bytes, kind: str) -> None:
    """C-05: lengths stay; a restored file is captured as the same."""
    once = masked(kind, content)
    assert len(once) == len(content)
    assert once.count(b"\n") == content.count(b"\n")
    assert masked(kind, once) == once


def test_names_stay_and_values_do_not() -> None:
    """DESIGN 4: path, kind and scope survive, no value does, nor a comment."""
    text = b"# old: hunter2hunter2\nexport API_KEY=abcdefghijkl\nEMPTY=\r\nhunter2 alone on a line\n"
    kept = masked("dotenv", text)
    assert b"hunter2" not in kept
    assert b"abcdef" not in kept
    assert b"export API_KEY=_2T." in kept
    assert b"EMPTY=\r\n" in kept
    assert scope_of("dotenv", text) == "API_KEY, EMPTY"
    value = {"tokens": {"access": 'q"uoted\\secret', "empty": ""}, "list": ["secretsecret"], "at": 5}
    made = json.loads(masked("auth-json", json.dumps(value).encode()))
    assert (list(made), list(made["tokens"]), made["at"], made["tokens"]["empty"]) == (["tokens", "list", "at"], ["access", "empty"], 5, "")
    assert "secret" not in json.dumps(made)
    assert scope_of("npmrc", b"//registry.index.example/:_authToken=x\n//registry.index.example/y") == "registry.index.example"
    assert scope_of("netrc", b"machine host.example login a password b") == "host.example"
    assert scope_of("git-credentials", b"https://user:pw@host.example\n") == "host.example"
    assert "and 5 more" in scope_of("dotenv", b"".join(b"V%d=1\n" % n for n in range(15)))
