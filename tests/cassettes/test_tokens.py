"""Stand-ins for tokens: they parse, they are as long, and nothing of the real one is in them."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.tokens import (
    LIFETIME_S,
    described,
    is_public_url,
    letters,
    opaque,
    payload,
    prefix_of,
    stand_in,
    tokens_in,
    web_token,
)
from tests.cassettes.logins_scene import NOW_S, claims_of, jwt

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=12), JSON_VALUES, max_size=8), st.integers(0, 4_000_000_000))
def test_whatever_a_token_claims_its_stand_in_parses_and_is_valid_for_long(claims: dict[str, object], now_s: int) -> None:
    """Issue 3, item 8: synthetic tokens of the same shape."""
    real = jwt(claims)
    told = described(real.encode())
    assert told is not None
    made = web_token("access_token", told, now_s=now_s)
    found = claims_of(made.decode())
    assert found["exp"] == now_s + LIFETIME_S
    assert {*found} - {"exp", "iat"} == {*claims} - {"exp", "iat"}
    assert len(made.rpartition(b".")[2]) == len(real.rpartition(".")[2])


def test_only_public_claims_are_kept_and_nothing_of_the_signature() -> None:
    """SECURITY C4: scope from public parts only."""
    claims = {
        "iss": "https://i.example",
        "scp": ["a", "b"],
        "email": "me@real.example",
        "sub": "user-real-1",
        "n": 7,
        "deep": {"email_verified": True, "x": [{"name": "Real Name"}]},
    }
    told = described(jwt(claims).encode())
    assert told is not None
    kept = json.dumps(told)
    assert told["claims"]["iss"] == "https://i.example"  # type: ignore[index]
    assert told["claims"]["scp"] == ["a", "b"]  # type: ignore[index]
    assert told["claims"]["deep"]["email_verified"] is True  # type: ignore[index]
    for secret in ("me@real", "user-real-1", "Real Name", "s1gnature"):
        assert secret not in kept


def test_a_key_in_a_public_claim_is_not_kept() -> None:
    """Fail closed: an odd issuer that puts a credential where an audience belongs."""
    key = "sk-ant-api03-Qm9vS2VlcGVyMTIzNDU2Nzg5MGFiY2RlZg"
    assert key not in json.dumps(described(jwt({"aud": key, key: 1}).encode()))


@pytest.mark.parametrize(
    "token", [b"", b"a.b.c", b"eyJ.eyJ", b"eyJh.!!.x", b"a" * 20_000, base64.urlsafe_b64encode(b"[" * 4000) + b".e30.x", b"e30.MQ.x"]
)
def test_what_is_no_web_token_is_none(token: bytes) -> None:
    """Hostile bytes: deep, long, of another kind."""
    assert described(token) is None


def test_half_a_surrogate_pair_in_a_claim_is_not_kept() -> None:
    """JSON can write it, a record cannot: the recording goes on."""
    told = described(jwt({"iss": "\ud800", "\udc00": 1, "aud": "a"}).encode())
    assert told is not None
    json.dumps(told, ensure_ascii=False).encode()
    assert tokens_in(json.dumps({"\ud800": jwt({})}).encode(), ()) == {}


def test_tokens_are_found_by_their_place_under_any_nesting() -> None:
    """The place is how a replay finds them again."""
    token = jwt({"iss": "i"})
    found = tokens_in(json.dumps({"a": {"b": [token, {"c": token}]}, "d": "eyJnot", "e": 1}).encode(), ())
    assert sorted(found) == ["a.b[0]", "a.b[1].c"]
    assert tokens_in(b"[" * 5000, ()) == tokens_in(b"x=1", ()) == tokens_in(b"{", ()) == {}


def test_without_a_description_a_token_is_as_long_as_it_was_where_that_can_be() -> None:
    """Old recordings, and bodies that were kept before."""
    assert len(web_token("t", None, now_s=NOW_S, size_bytes=900)) == 900
    claims_of(web_token("t", None, now_s=NOW_S, size_bytes=5).decode())


def test_a_made_signature_says_that_it_is_none() -> None:
    """Whoever decodes it reads what it is."""
    text = web_token("t", None, now_s=NOW_S).rpartition(b".")[2]
    assert b"not a signature" in base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))


@given(st.text(max_size=30), st.integers(0, 400))
def test_an_opaque_token_has_its_length_and_beginning_and_depends_on_its_name_alone(name: str, size: int) -> None:
    """No oracle: never a function of what it replaces."""
    assert len(opaque(name, size)) == max(size, 1)
    assert opaque(name, size + 20, prefix=b"ghs_").startswith(b"ghs_")
    assert letters(name, 30)[:10] == letters(name, 10)


def test_stand_ins_keep_the_form_of_what_they_stand_for() -> None:
    """Clients parse ids, addresses and URLs too."""
    assert stand_in("uuid", "3f0c2c1e-9a7b-4a52-8d9e-0f6f1f5b7c11") == stand_in("uuid", "x" * 36) != "x" * 36
    assert stand_in("email", "a@b.example") == stand_in("login", "a@b.example") == "secondtake@replay.invalid"
    assert stand_in("where", "https://a.example/private/hook") == "https://replay.invalid/"
    assert stand_in("account_id", "123456789012") == "000000000000"
    assert stand_in("name", "") == ""


def test_the_beginning_of_a_key_is_public() -> None:
    """It says of what kind a token has to be."""
    assert prefix_of(b"sk-ant-ort01-abc") == b"sk-ant-ort01-"
    assert prefix_of(b"whatever") == b""
    assert payload(b"nothing") is None


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://api.individual.forge.example", True),
        ("https://forge.example/login/device", True),
        ("https://u:p@forge.example/", False),
        ("https://forge.example/?token=a", False),
        ("https://hooks.example/services/T00000000/B00000000/a1B2c3D4e5F6g7H8i9J0k1L2", False),
        ("https://h.example/sk-ant-api03-abcdefghij", False),
        ("ftp://h.example/", False),
        ("https://h.example/" + "a" * 300, False),
    ],
)
def test_a_url_that_only_says_where_something_is_stays_readable(url: str, public: bool) -> None:
    """The endpoints in a Copilot token's answer; C-09: no URL that is itself a secret."""
    assert is_public_url(url) is public
