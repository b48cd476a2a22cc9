"""Explaining one ID: its class, why, what to take instead, when it retires (PROVIDERS A4). Pure; the day is an argument."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date

from secondtake.cassettes.pins.tables import PinClass, Table, table

MAX_CANDIDATES = 8
_MAX_DEPTH = 4
_ID_CHARACTERS = 512

_FAMILIES = {
    "anthropic": "anthropic", "openai": "openai", "gemini": "gemini", "vertex": "vertex", "azure-openai": "azure-openai",
    "bedrock": "bedrock", "gateway": "gateway", "ollama": "ollama",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pin:
    """What an ID promises. `candidates` are better-held IDs of the same family, not retired on the day asked about, newest first.

    `where`: a geographic prefix, which says where a model runs and not which. `table`: version of the table that says so.
    """

    id: str
    provider: str
    pin_class: PinClass
    reason: str
    candidates: tuple[str, ...] = ()
    retires: date | None = None
    retired: bool = False
    where: str | None = None
    table: str = ""

    @property
    def held(self) -> bool:
        """Whether an experiment takes it without `--allow-unpinned`."""
        return self.pin_class.held


def explain(identity: str, provider: str, *, on: date | None = None) -> Pin:
    """Explain an ID as `provider` understands it. `on`: the day on which `retired` is judged; None judges nothing.

    An ID no rule knows is an `alias`, for nothing holds it: it may still be used, labelled.

    Raises:
        BadInput: no table for that provider.
    """
    return _explain(identity, table(provider), on, _MAX_DEPTH)


def provider_of(adapter: str, host: str) -> str:
    """Which table explains the IDs of a call: the adapter's where it says, else the host's family, else a gateway's.

    A server on a host of its own may map any name, whichever format it speaks, so it counts as a gateway.
    """
    if adapter in ("anthropic", "gemini"):
        from secondtake.cassettes.adapters import family_of

        return adapter if family_of(host) == adapter else "gateway"
    if adapter in ("openai-chat", "openai-responses"):
        ours = host in ("api.openai.com", "chatgpt.com") or host.endswith(".api.openai.com")
        return "openai" if ours else _vendor(host)
    if adapter == "gateway":
        return _vendor(host)
    return _FAMILIES.get(adapter, "gateway")


_LOOKS = tuple(
    (provider, re.compile(start))
    for provider, start in (
        ("vertex", r"claude-[a-z0-9-]+@|publishers/|projects/|endpoints/"),
        ("anthropic", r"claude-|(?:opus|sonnet|haiku|best|default|opusplan)$"),
        ("bedrock", r"arn:aws|(?:[a-z-]+\.)?(?:anthropic|amazon|meta|mistral|cohere|ai21|deepseek|openai|qwen|writer|stability)\."),
        ("openai", r"gpt-|o\d|chatgpt|codex|ft:|computer-use|davinci|babbage"),
        ("gemini", r"(?:models/)?(?:gemini|gemma|learnlm)-|tunedModels/"),
        ("xai", r"grok-"),
        ("mistral", r"(?:open-)?(?:mistral|mixtral|codestral|ministral|magistral|devstral|pixtral)-"),
        ("huggingface", r"[^@]+@[0-9a-f]{40}$"),
        ("ollama", r"(?:[^@]+@)?sha256[:-]|[a-z0-9._-]+:[a-z0-9._-]+$"),
    )
)


def looks_like(identity: str) -> str:
    """Which table explains an ID about which nothing else is known: by how vendors write theirs, else a gateway's."""
    return next((provider for provider, start in _LOOKS if start.match(identity)), "gateway")


def _vendor(host: str) -> str:
    if host.endswith(".mistral.ai"):
        return "mistral"
    return "xai" if host == "api.x.ai" else "gateway"


def _explain(identity: str, rules: Table, on: date | None, depth: int) -> Pin:
    found = Pin(identity, rules.provider, PinClass.ALIAS, "not known here, so taken as moving", table=rules.version)
    rule, match = None, None
    for rule in rules.rules if len(identity) <= _ID_CHARACTERS else ():
        match = rule.match.fullmatch(identity)
        if match is not None:
            break
    if rule is not None and match is not None:
        found = replace(found, pin_class=rule.pin_class, reason=rule.reason)
        groups = match.groupdict()
        inner = groups.get("inner")
        if inner is not None and depth > 0 and rule.pin_class is not PinClass.SNAPSHOT:
            deep = _explain(inner, table(rule.provider), on, depth - 1)
            found = replace(deep, id=identity, provider=rules.provider, reason=f"{rule.reason}: {deep.reason}")
        if groups.get("where") is not None:
            found = replace(found, where=groups["where"], reason=f"{found.reason} (`{groups['where']}.` says where it runs)")
    retires = rules.retires.get(identity) or found.retires
    found = replace(found, retires=retires, retired=retires is not None and on is not None and on >= retires)
    if found.pin_class in (PinClass.CONTENT, PinClass.SNAPSHOT) and not found.retired:
        return replace(found, candidates=())
    return replace(found, candidates=_candidates(identity, rules, on) or found.candidates)


def _candidates(identity: str, rules: Table, on: date | None) -> tuple[str, ...]:
    """Known IDs of the same family that are held better, the longest common front first, then the newest."""
    bare = re.sub(r"@(?:default|latest)$|-(?:latest|preview|exp|beta)$", "", identity)
    prefix = re.match(r"(?:us-gov|us|eu|apac|au|jp|ca|global)\.", bare)
    bare = bare[prefix.end() :] if prefix else bare
    stem = rules.stems.get(identity) or bare
    alive = [known for known in rules.known if known != identity and not (on is not None and on >= rules.retires.get(known, date.max))]
    close = [known for known in alive if known.startswith(stem)]
    family = re.match(r"[a-z.]*[a-z]+-(?:[a-z]+-)?", bare)
    if not close and family is not None:
        close = [known for known in alive if known.startswith(family[0])]
    return tuple((prefix[0] if prefix else "") + known for known in close[:MAX_CANDIDATES])
