from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes import envelope
from secondtake.cassettes.canonical import Json
from secondtake.cassettes.envelope import FIELDS, UNKNOWN, Envelope, Layer, Source, compare, decode, encode, merged, of
from secondtake.cassettes.errors import BadInput, Corrupt, TooNew
from secondtake.cassettes.limits import ENVELOPE_BYTES

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
PLACES = [(layer, each.name) for layer, fields in FIELDS.items() for each in fields]


def test_every_layer_has_its_fields_whatever_is_known() -> None:
    """Issue 5, item 2: all seven layers; what cannot be known is `unknown`, never left out."""
    nothing = of({})
    assert [str(layer) for layer in nothing.layers] == [
        "repository", "instructions", "model", "tools", "environment", "external", "orchestrator",
    ]  # fmt: skip
    assert all(set(nothing.layers[layer]) == {each.name for each in FIELDS[layer]} for layer in Layer)
    assert all(value == UNKNOWN for fields in nothing.layers.values() for value in fields.values())
    assert len(envelope.unknown(nothing)) == len(PLACES)


@given(st.dictionaries(st.sampled_from(PLACES), JSON, max_size=5))
def test_what_is_encoded_is_decoded_again_and_has_one_form(known: dict[tuple[Layer, str], Json]) -> None:
    """Issue 5: the fingerprint is over canonical JSON."""
    layers: dict[Layer, dict[str, Json]] = {}
    for (layer, name), value in known.items():
        layers.setdefault(layer, {})[name] = value
    made = of(layers)
    again = decode(encode(made))
    assert encode(again) == encode(made)
    assert again.fingerprint == made.fingerprint
    assert compare(made, again) == ()


def test_spelling_and_order_do_not_change_the_fingerprint() -> None:
    """Issue 5: canonical JSON."""
    one = of({Layer.MODEL: {"parameters": {"a": 1, "b": 2.0}}})
    other = of({Layer.MODEL: {"parameters": {"b": 2, "a": 1.0}}})
    assert one.fingerprint == other.fingerprint
    assert encode(one) == encode(other)


def test_how_a_run_went_is_no_part_of_the_fingerprint() -> None:
    """Issue 5: a restored scene that is captured again has the same fingerprint, however it went on."""
    one, other = of({Layer.EXTERNAL: {"hosts": {"web": ["a.example"]}}}), of({Layer.EXTERNAL: {"hosts": {}}})
    assert one.fingerprint == other.fingerprint
    assert [each.expected for each in compare(one, other)] == [True]


@pytest.mark.parametrize(("layer", "name"), [place for place in PLACES if not envelope.field_of(*place).outcome])
def test_any_other_field_changes_the_fingerprint(layer: Layer, name: str) -> None:
    """DESIGN 1: the envelope's digest is the fingerprint."""
    assert of({layer: {name: "other"}}).fingerprint != of({}).fingerprint


def test_a_comparison_names_layer_and_field_with_both_values() -> None:
    """Issue 5: `fixture check` says which layers differ."""
    recorded = of({Layer.ENVIRONMENT: {"kernel": "6.1", "cpus": 2, "umask": "022"}})
    now = of({Layer.ENVIRONMENT: {"kernel": "6.2", "cpus": 2}})
    kernel, umask = compare(recorded, now)
    assert (kernel.name, kernel.recorded, kernel.now, kernel.comparable) == ("environment.kernel", "6.1", "6.2", True)
    assert (umask.name, umask.recorded, umask.now, umask.comparable) == ("environment.umask", "022", UNKNOWN, False)
    assert compare(recorded, now, source=Source.TRAFFIC) == ()


def test_true_and_one_are_not_the_same() -> None:
    """A comparison is of JSON values, not of Python's."""
    assert len(compare(of({Layer.REPOSITORY: {"dirty": True}}), of({Layer.REPOSITORY: {"dirty": 1}}))) == 1


def test_a_merged_envelope_takes_each_field_from_where_it_is_read() -> None:
    """Issue 5: what is derivable from the recorded traffic is read from there."""
    machine = of({Layer.ENVIRONMENT: {"kernel": "6.1"}, Layer.INSTRUCTIONS: {"task": "guessed"}})
    traffic = of({Layer.ENVIRONMENT: {"kernel": "guessed", "os": "Linux"}, Layer.INSTRUCTIONS: {"task": "read"}})
    both = merged(machine, traffic)
    assert both.value(Layer.ENVIRONMENT, "kernel") == "6.1"
    assert both.value(Layer.ENVIRONMENT, "os") == "Linux"
    assert both.value(Layer.INSTRUCTIONS, "task") == "read"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"v":true,"layers":{}}',
        b'{"v":1,"layers":{}}',
        b'{"v":0,"layers":{}}',
        encode(of({})) + b" ",
        encode(of({})).replace(b'"v":1', b'"v": 1'),
        encode(of({})).replace(b'"os"', b'"so"'),
        encode(of({})).replace(b'"os":"unknown",', b""),
        encode(of({})).replace(b'"os":"unknown"', b'"os":"unknown","os":"x"'),
        encode(of({})).replace(b'"cpus":"unknown"', b'"cpus":2.0'),
        encode(of({})).replace(b'"cpus":"unknown"', b'"cpus":NaN'),
        b"\xff",
        b"[" * 100_000,
        b" " * (ENVELOPE_BYTES + 1),
    ],
)
def test_what_is_no_envelope_is_refused(data: bytes) -> None:
    """A stranger's fixture: strict, and bounded."""
    with pytest.raises(Corrupt):
        decode(data)


def test_a_later_format_says_update() -> None:
    """mitmproxy's way: the error for a newer file says what to do."""
    with pytest.raises(TooNew) as caught:
        decode(json.dumps({"v": 2, "layers": {}}).encode())
    assert caught.value.hint == "update secondtake"


def test_a_field_that_does_not_exist_is_refused() -> None:
    """A typing mistake in a capture must not vanish in `unknown`."""
    with pytest.raises(BadInput, match=r"environment\.kernal"):
        of({Layer.ENVIRONMENT: {"kernal": "6.1"}})
    with pytest.raises(BadInput, match="seven"):
        Envelope({})
    with pytest.raises(BadInput):
        of({Layer.MODEL: {"parameters": float("nan")}})


def test_the_page_lists_the_fields_as_they_are() -> None:
    """STYLE: what the manual says is compared with the code."""
    page = (Path(__file__).parents[2] / "docs" / "envelope.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\w+) \| `(\w+)` \| (\w+)(, outcome)? \| (.+) \|$", page, re.MULTILINE)
    expected = [(layer, each.name, each.source, each.outcome, each.what) for layer, fields in FIELDS.items() for each in fields]
    assert [(layer, name, source, bool(outcome), what) for layer, name, source, outcome, what in rows] == expected
