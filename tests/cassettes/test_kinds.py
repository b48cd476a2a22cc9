"""What kinds of credentials there are."""

import re

import pytest

from secondtake.cassettes.kinds import KINDS, LEADS, WHOLE, estimated_bits, looks_random, searchable, value_kind

TOKENS = {
    "anthropic-api-key": b"sk-ant-api03-Qm9vS2VlcGVyMTIzNDU2Nzg5MGFiY2RlZg",
    "anthropic-oauth": b"sk-ant-oat01-Qm9vS2VlcGVyMTIzNDU2Nzg5MGFiY2RlZg",
    "openai-project-key": b"sk-proj-Qm9vS2VlcGVyMTIzNDU2Nzg5MGFiY2RlZg",
    "openrouter-api-key": b"sk-or-v1-0123456789abcdef0123456789abcdef",
    "github-pat": b"ghp_0123456789abcdefghijklmnopqrstuvwxyz",
    "github-pat-fine-grained": b"github_pat_11AAAAAAA0123456789abcdef",
    "aws-access-key-id": b"AKIAQRSTUVWXYZ234567",
    "slack-token": b"xoxb-123456789012-abcdefghijkl",
    "npm-token": b"npm_0123456789abcdefghijklmnopqrstuvwxyz",
    "index-upload-token": b"pypi-AgEIcHlwaS5vcmcCJDAwMDAwMDAwLTAwMDAtMDAwMC0wMDAwLTAwMDAwMDAw",
    "hugging-face-token": b"hf_abcdefghijklmnopqrstuvwxyzABCDEFGH",
    "google-api-key": b"AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "groq-api-key": b"gsk_0123456789abcdefghijklmnopqrstuvwxyz",
    "xai-api-key": b"xai-0123456789abcdefghijklmnopqrstuvwxyz0123456789",
    "gcp-oauth": b"ya29.a0AfH6SMBx0123456789abcdef",
    "jwt": b"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLWJ5dGVz",
}


def test_codes_and_names_of_kinds_are_unique() -> None:
    """A placeholder's code says one kind only (C-11)."""
    assert len({kind.code for kind in KINDS}) == len(KINDS) == len({kind.name for kind in KINDS})
    assert all(re.fullmatch("[a-z0-9]{3}", kind.code) for kind in KINDS)


def test_there_are_sixty_kinds() -> None:
    """C-09 plants one of each."""
    assert len(KINDS) >= 60


@pytest.mark.parametrize(("kind", "token"), TOKENS.items())
def test_a_value_shows_its_kind(kind: str, token: bytes) -> None:
    """C-09: the kind is read from the public prefix."""
    assert value_kind(token) == kind
    assert next(one.name for one, whole in WHOLE if whole.fullmatch(token)) == kind


def test_every_prefix_begins_with_a_lead() -> None:
    """The set that is asked first lets no kind slip (C-09)."""
    for kind, _ in WHOLE:
        first = re.sub(r"\\(.)", r"\1", kind.prefix)
        choices = re.fullmatch(r"([A-Za-z0-9_.-]*)(?:\(\?:([^)]*)\)|\[([a-z]+)\])?(.*)", first)
        assert choices is not None
        middles = choices[2].split("|") if choices[2] else list(choices[3] or "") or [""]
        for middle in middles:
            assert (choices[1] + middle + choices[4])[:3].encode() in LEADS, kind.name


@pytest.mark.parametrize("word", [b"sk-", b"sk-inny", b"hf_", b"task-force", b"dapifoo", b"oy2", b"eyJust"])
def test_a_word_with_a_public_prefix_is_no_credential(word: bytes) -> None:
    """Plain words are not called keys."""
    assert value_kind(word) is None


@pytest.mark.parametrize("value", [b"", b"short", b"password", b"LOCALHOST", b"aaaaaaaaaaaa", b"12345678"])
def test_short_and_common_values_are_never_searched(value: bytes) -> None:
    """K: they would be found in every text."""
    assert not searchable(value)


def test_randomness_tells_keys_from_names() -> None:
    """`?key=user_1` is not a credential; a random value is (A: nothing is approximated silently)."""
    assert looks_random(b"9f86d081884c7d659a2feaa0c55ad015")
    assert looks_random(b"AIzaSyA1234567890abcdefghijklmnopqrstuv")
    assert not looks_random(b"user_1")
    assert not looks_random(b"config/production/settings")
    assert estimated_bits(b"") == 0
    assert estimated_bits(b"aaaa") == 0
