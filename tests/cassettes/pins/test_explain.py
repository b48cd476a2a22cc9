"""What holds a model fixed: the classes of PROVIDERS A4, and that each is explained."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondtake.cassettes.pins import PROVIDERS, PinClass, explain, looks_like, provider_of, table

TODAY = date(2026, 11, 29)

IDS = {
    "anthropic": {
        "snapshot": [
            "claude-sonnet-4-5-20250929",
            "claude-3-5-sonnet-20241022",
            "claude-opus-4-6",
            "claude-opus-4-8",
            "claude-sonnet-5",
            "claude-haiku-5-5",
            "claude-opus-4-6-20260205",
            "claude-opus-4-10",
        ],
        "versioned": ["claude-mythos-preview"],
        "alias": [
            "claude-sonnet-4-5",
            "claude-opus-4-1",
            "claude-opus-4",
            "claude-3-5-sonnet-latest",
            "claude-3-opus",
            "opus",
            "sonnet",
            "best",
            "never-heard-of",
        ],
    },
    "bedrock": {
        "content": ["arn:aws:bedrock:us-east-1:123456789012:imported-model/abc"],
        "snapshot": [
            "anthropic.claude-sonnet-4-5-20250929-v1:0",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "global.anthropic.claude-opus-4-6-v1",
            "anthropic.claude-opus-4-8",
            "us-gov.anthropic.claude-3-haiku-20240307-v1:0",
            "amazon.nova-pro-v1:0",
            "meta.llama3-1-8b-instruct-v1:0",
            "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-3-haiku-20240307-v1:0",
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-3-haiku-20240307-v1:0",
        ],
        "versioned": ["amazon.titan-text-lite-v1", "eu.amazon.titan-text-lite-v1"],
        "alias": ["anthropic.claude-sonnet-4-5"],
        "router": ["arn:aws:bedrock:us-east-1:123456789012:default-prompt-router/anthropic.claude:1"],
        "deployment": [
            "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abcdef",
            "arn:aws:bedrock:us-east-1:1:provisioned-model/x",
            "arn:aws:sagemaker:us-east-1:1:endpoint/x",
            "arn:aws:bedrock:us-east-1:1:custom-model-deployment/x",
        ],
    },
    "vertex": {
        "snapshot": [
            "claude-sonnet-4-5@20250929",
            "claude-opus-4-6",
            "gemini-2.0-flash-001",
            "publishers/google/models/gemini-2.0-flash-001",
        ],
        "versioned": ["gemini-2.5-pro"],
        "alias": ["claude-sonnet-4-5", "claude-sonnet-4-5@default", "gemini-flash-latest"],
        "deployment": ["1234567890", "endpoints/55"],
    },
    "openai": {
        "snapshot": [
            "gpt-4o-2024-08-06",
            "gpt-4-0613",
            "gpt-4-1106-preview",
            "gpt-3.5-turbo-0125",
            "o3-mini-2025-01-31",
            "ft:gpt-4o-mini-2024-07-18:org:name:abc",
            "computer-use-preview-2025-03-11",
        ],
        "versioned": ["gpt-6-astra", "gpt-5.6-sol", "gpt-6.2-sol", "gpt-5", "gpt-4o", "o1", "gpt-5.1-codex"],
        "alias": ["gpt-5.1-chat-latest", "chat-latest", "gpt-5-chat", "computer-use-preview", "chatgpt-4o-latest", "codex-mini-latest"],
    },
    "azure-openai": {"deployment": ["gpt-4o-2024-08-06", "my-deployment"]},
    "gemini": {
        "snapshot": [
            "gemini-2.0-flash-001",
            "models/gemini-2.0-flash-001",
            "gemini-2.5-pro-preview-06-05",
            "gemini-2.5-flash-preview-09-2025",
            "gemini-2.0-flash-exp-0827",
        ],
        "versioned": ["gemini-2.5-pro", "gemini-3.8-flash", "gemini-3.5-flash-lite"],
        "alias": ["gemini-flash-latest", "gemini-3-pro-preview", "gemini-2.0-flash-exp"],
    },
    "mistral": {
        "snapshot": ["mistral-large-2512"],
        "alias": ["mistral-large-latest", "mistral-large", "mistral-medium-3", "mistral-large-4-0"],
    },
    "xai": {"snapshot": ["grok-4.20-0309", "grok-4.20-0309-reasoning"], "versioned": ["grok-4.6"], "alias": ["grok-4-latest", "grok-beta"]},
    "gateway": {
        "snapshot": ["openai/gpt-4o-2024-08-06", "anthropic/claude-3-5-sonnet-20241022", "openai/gpt-4o-2024-08-06:free"],
        "alias": ["anthropic/claude-opus-4.8", "claude-opus-4.8", "gpt-group", "deepseek/deepseek-r1:free"],
        "router": ["openrouter/auto", "openai/gpt-4o-2024-08-06:nitro", "x/y:online"],
    },
    "ollama": {
        "content": ["sha256:" + "a" * 64, "llama3@sha256:" + "b" * 64],
        "alias": ["llama3.3", "qwen3:32b"],
        "deployment": ["gpt-oss:120b-cloud"],
    },
    "huggingface": {"content": ["org/name@" + "0" * 40], "alias": ["org/name@main"], "deployment": ["org/name", "anything"]},
}
FLAT = [(provider, one, pin_class) for provider, classes in IDS.items() for pin_class, ids in classes.items() for one in ids]


@pytest.mark.parametrize(("provider", "identity", "pin_class"), FLAT, ids=[f"{p}: {i[:60]}" for p, i, _ in FLAT])
def test_each_id_has_its_class_and_a_reason(provider: str, identity: str, pin_class: str) -> None:
    """A-05, A4: dateless Claude IDs are snapshots from 4.6 on; a short name of before is not."""
    pin = explain(identity, provider, on=TODAY)
    assert pin.pin_class == pin_class
    assert pin.reason
    assert (pin.id, pin.provider) == (identity, provider)
    assert pin.held is (pin_class in ("content", "snapshot", "versioned"))


@pytest.mark.parametrize(
    ("provider", "identity", "candidate"),
    [
        ("anthropic", "claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
        ("anthropic", "opus", "claude-opus-5-5"),
        ("anthropic", "claude-haiku-4-5-latest", "claude-haiku-4-5-20251001"),
        ("openai", "gpt-4o", "gpt-4o-2024-11-20"),
        ("openai", "chatgpt-4o-latest", "gpt-4o-2024-08-06"),
        ("vertex", "claude-sonnet-4-5@default", "claude-sonnet-4-5@20250929"),
        ("vertex", "claude-haiku-4-5", "claude-haiku-4-5@20251001"),
        ("bedrock", "us.anthropic.claude-haiku-4-5", "us.anthropic.claude-haiku-4-5-20251001-v1:0"),
        ("mistral", "mistral-large-latest", "mistral-large-2512"),
    ],
)
def test_an_id_that_moves_names_dated_candidates(provider: str, identity: str, candidate: str) -> None:
    """DESIGN 5: a clear error that names dated candidates."""
    assert candidate in explain(identity, provider, on=TODAY).candidates


def test_a_geographic_prefix_says_where_and_not_which() -> None:
    """A4, row Bedrock: same class, recorded."""
    assert explain("us.anthropic.claude-opus-4-6-v1", "bedrock").where == "us"
    assert explain("anthropic.claude-opus-4-6-v1", "bedrock").where is None


@pytest.mark.parametrize(("day", "retired"), [(date(2026, 11, 29), False), (date(2026, 11, 30), True), (None, False)])
def test_a_pin_has_a_death_date(day: date | None, retired: bool) -> None:
    """A4: `retired`, not failed; and a retired pin names who still lives."""
    pin = explain("claude-sonnet-4-5-20250929", "anthropic", on=day)
    assert pin.retires == date(2026, 11, 30)
    assert pin.retired is retired
    assert bool(pin.candidates) is retired
    assert "claude-sonnet-4-5-20250929" not in explain("claude-sonnet-4-5", "anthropic", on=date(2027, 1, 1)).candidates
    assert explain("gpt-5", "openai", on=date(2026, 12, 11)).retired


@given(st.text(max_size=80), st.sampled_from(PROVIDERS))
def test_any_text_is_explained(identity: str, provider: str) -> None:
    """A-13: an unknown model passes with a notice, never with an exception."""
    assert explain(identity, provider, on=TODAY).reason


def test_a_very_long_id_costs_nothing() -> None:
    """B-11: no rule is tried on what no provider would take."""
    assert explain("a-" * 100_000, "openai").pin_class is PinClass.ALIAS


@pytest.mark.parametrize(
    ("adapter", "host", "provider"),
    [
        ("openai-chat", "api.openai.com", "openai"),
        ("openai-responses", "eu.api.openai.com", "openai"),
        ("openai-chat", "vllm.internal.example", "gateway"),
        ("anthropic", "api.anthropic.com", "anthropic"),
        ("anthropic", "llm.internal.example", "gateway"),
        ("gemini", "generativelanguage.googleapis.com", "gemini"),
        ("gemini", "llm.internal.example", "gateway"),
        ("gateway", "api.mistral.ai", "mistral"),
        ("gateway", "api.x.ai", "xai"),
        ("gateway", "openrouter.ai", "gateway"),
        ("azure-openai", "res.openai.azure.com", "azure-openai"),
        ("bedrock", "bedrock-runtime.us-east-1.amazonaws.com", "bedrock"),
    ],
)
def test_the_table_follows_from_the_call(adapter: str, host: str, provider: str) -> None:
    """A4: Azure is always a deployment; a private host may map any name, whichever format it speaks."""
    assert provider_of(adapter, host) == provider


@pytest.mark.parametrize(
    ("identity", "provider"),
    [
        ("claude-opus-4-6", "anthropic"),
        ("sonnet", "anthropic"),
        ("claude-sonnet-4-5@20250929", "vertex"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock"),
        ("arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abcdefghijkl", "bedrock"),
        ("gpt-5.5-2026-04-23", "openai"),
        ("o3", "openai"),
        ("models/gemini-2.5-pro", "gemini"),
        ("grok-4.20-0309", "xai"),
        ("mistral-large-2411", "mistral"),
        ("llama3.2:8b", "ollama"),
        ("meta/model@" + "0a" * 20, "huggingface"),
        ("openrouter/auto", "gateway"),
        ("", "gateway"),
    ],
)
def test_an_id_alone_is_explained_by_the_table_of_who_writes_ids_so(identity: str, provider: str) -> None:
    """Issue 3.2: `secondtake pin ID` explains one, without being told whose it is."""
    assert looks_like(identity) == provider


def test_every_known_pin_is_explained_by_a_table_that_holds_it_too() -> None:
    """A guess may go to another table than the vendor's, never to a worse class than the vendor's own."""
    for provider in PROVIDERS:
        for identity in table(provider).known:
            assert explain(identity, looks_like(identity)).held, (provider, identity)
