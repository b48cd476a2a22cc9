"""The envelope: all that surrounds a run and could change it, in seven layers with a fixed list of fields each.

Every field is there, always: what could not be known is `unknown`, and never left out. Values are JSON. The form is canonical (sorted keys,
no white space, ASCII, one spelling per number), so one envelope has one encoding, and its SHA-256 is the fingerprint. No time of capture is
in it, and no value of a credential.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from secondtake.cassettes.canonical import Json, dump_json, parse_json
from secondtake.cassettes.errors import BadInput, Corrupt, TooNew
from secondtake.cassettes.limits import ENVELOPE_BYTES

UNKNOWN = "unknown"
"""The value of a field that could not be known."""

FORMAT = 1
"""Raised when a field is added, renamed or taken away."""


class Layer(StrEnum):
    """The seven layers (DESIGN 6)."""

    REPOSITORY = "repository"
    INSTRUCTIONS = "instructions"
    MODEL = "model"
    TOOLS = "tools"
    ENVIRONMENT = "environment"
    EXTERNAL = "external"
    ORCHESTRATOR = "orchestrator"


class Source(StrEnum):
    """Where a field is read."""

    MACHINE = "machine"
    """From the machine, before the agent starts: it can be checked without a run."""
    TRAFFIC = "traffic"
    """From what was recorded: known once the agent has run."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a layer. `outcome`: it follows from how a run or a capture went; it is no part of the fingerprint, and may differ."""

    name: str
    source: Source
    what: str
    outcome: bool = False


_M, _T = Source.MACHINE, Source.TRAFFIC

FIELDS: Mapping[Layer, tuple[Field, ...]] = MappingProxyType(
    {
        Layer.REPOSITORY: (
            Field("commit", _M, "the commit that is checked out; null where none is, or no repository"),
            Field("branch", _M, "the branch; null when detached"),
            Field(
                "dirty",
                _M,
                "how many tracked files differ from what is staged, how many are not tracked; null without a repository",
            ),
            Field(
                "submodules",
                _M,
                "each repository below the workspace by its path: commit, branch, dirty; or `uninitialised`",
            ),
            Field("git", _M, "digest of what git keeps: staged entries, refs, configuration, the names of all objects"),
            Field("tree", _M, "digest of all files the agent can read: tracked, untracked, ignored, with modes and links"),
            Field("not_captured", _M, "what is in the workspace and not in the tree, and why", outcome=True),
        ),
        Layer.INSTRUCTIONS: (
            Field("system", _T, "SHA-256 of each system prompt, in order of first use, with the number of its first model call"),
            Field("task", _T, "the first text of the user, and its SHA-256"),
            Field("rules", _M, "the files of rules the agent reads, each with its SHA-256"),
        ),
        Layer.MODEL: (
            Field("providers", _T, "wire format and host of model calls"),
            Field("requested", _T, "each model asked for, with what holds it fixed"),
            Field("parameters", _T, "parameters by model asked for, one entry for each different set"),
        ),
        Layer.TOOLS: (
            Field("offered", _T, "each tool by name: SHA-256 of its description and of its JSON schema"),
            Field("server_side", _T, "tools that the provider runs itself"),
            Field("permissions", _M, "what the command line and the agent's settings say of what it may do"),
            Field("timeouts", _M, "time limits of tools that the environment sets"),
            Field("mcp_servers", _T, "MCP servers, by the names of their tools and by their hosts"),
            Field("mcp_config", _M, "files that name MCP servers: the servers' names, and the file's SHA-256"),
        ),
        Layer.ENVIRONMENT: (
            Field("os", _M, "the operating system"),
            Field("distribution", _M, "its distribution and version"),
            Field("architecture", _M, "the processor's architecture"),
            Field("kernel", _M, "the kernel's release"),
            Field("container", _M, "kind of container and its image, where that can be read; null outside of one"),
            Field("programs", _M, "versions of programs the agent can run; null for one that is not there"),
            Field("locks", _M, "lock files of the workspace, each with its SHA-256"),
            Field("locale", _M, "LANG and LC_* as the agent finds them"),
            Field("time_zone", _M, "the time zone as the agent finds it"),
            Field("umask", _M, "permissions that new files do not get, octal"),
            Field("cpus", _M, "processors that may be used"),
            Field("limits", _M, "limits of resources: open files, processes, file size, memory"),
            Field("home", _M, "which files of HOME decide how the agent starts, and are there"),
        ),
        Layer.EXTERNAL: (
            Field("cassette", _T, "Merkle root of what is played"),
            Field("hosts", _T, "hosts asked, by channel", outcome=True),
            Field("routes", _M, "hosts whose traffic was sent to another origin"),
            Field("credentials", _T, "credentials used, and variables and files that hold one: kind, place, scope; no value", outcome=True),
            Field("clock", _M, "which time the agent finds"),
            Field("random", _M, "where its randomness comes from"),
        ),
        Layer.ORCHESTRATOR: (
            Field("agent", _M, "the agent's name, as its driver or its program says"),
            Field("version", _M, "its version, as installed"),
            Field("driver", _M, "what is known of its start"),
            Field("command", _M, "its command line"),
            Field("switches", _M, "variables that change what it asks"),
            Field("client", _T, "what it calls itself on the wire"),
            Field("loop_limit", _M, "how many turns it may take, where the command line says"),
            Field("retry", _T, "repeated model calls that were seen", outcome=True),
            Field("compaction", _T, "whether the conversation was seen to get shorter", outcome=True),
        ),
    }
)
"""Every field of every layer, in the order in which they are shown. docs/envelope.md holds the same list."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """One envelope. `layers` holds exactly the fields of `FIELDS`; `of` fills in what is not known."""

    layers: Mapping[Layer, Mapping[str, Json]]

    def __post_init__(self) -> None:
        """Raises BadInput for a field that does not exist, one that is missing, and a value that is no JSON."""
        wrong = _wrong(self.layers)
        if wrong is not None:
            raise BadInput(f"not an envelope: {wrong}")
        _encoded(self.layers, outcomes=True)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the canonical form without outcomes, hexadecimal."""
        return hashlib.sha256(_encoded(self.layers, outcomes=False)).hexdigest()

    def value(self, layer: Layer, name: str) -> Json:
        """Return one field."""
        return self.layers[layer][name]


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that two envelopes do not have in common."""

    layer: Layer
    field: str
    recorded: Json
    now: Json

    @property
    def name(self) -> str:
        """`LAYER.FIELD`."""
        return f"{self.layer}.{self.field}"

    @property
    def comparable(self) -> bool:
        """Whether what differs is known on both sides. What is known on one side only is no proof of a change, and none of sameness."""
        if isinstance(self.recorded, Mapping) and isinstance(self.now, Mapping):  # one program of many that did not say its version in time
            pairs = [(self.recorded.get(name), self.now.get(name)) for name in {*self.recorded, *self.now}]
        else:
            pairs = [(self.recorded, self.now)]
        return any(UNKNOWN not in pair and _canonical(pair[0]) != _canonical(pair[1]) for pair in pairs)

    @property
    def expected(self) -> bool:
        """The field says how a run or a capture went, which differs by nature."""
        return field_of(self.layer, self.field).outcome

    @property
    def source(self) -> Source:
        """Where the field is read."""
        return field_of(self.layer, self.field).source


def of(known: Mapping[Layer, Mapping[str, Json]]) -> Envelope:
    """Return the envelope with these fields, all others unknown. Raises BadInput: there is no such field."""
    strange = [f"{layer}.{name}" for layer, fields in known.items() for name in fields if name not in _names(layer)]
    if strange:
        raise BadInput(f"not an envelope: no field {strange[0]}")
    return Envelope({layer: {each.name: known.get(layer, {}).get(each.name, UNKNOWN) for each in FIELDS[layer]} for layer in Layer})


def merged(machine: Envelope, traffic: Envelope) -> Envelope:
    """Return an envelope with each field from the side it is read on; from the other where that side does not know it."""

    def chosen(layer: Layer, each: Field) -> Json:
        first, second = (machine, traffic) if each.source is Source.MACHINE else (traffic, machine)
        value = first.value(layer, each.name)
        return second.value(layer, each.name) if value == UNKNOWN else value

    return Envelope({layer: {each.name: chosen(layer, each) for each in FIELDS[layer]} for layer in Layer})


def compare(recorded: Envelope, now: Envelope, *, source: Source | None = None) -> tuple[Difference, ...]:
    """Return every field in which the two differ, in order; with `source` only those read there.

    A field that one side does not know differs too (`Difference.comparable`); one that neither knows does not.
    """
    return tuple(
        Difference(layer, each.name, recorded.value(layer, each.name), now.value(layer, each.name))
        for layer in Layer
        for each in FIELDS[layer]
        if (source is None or each.source is source)
        and _canonical(recorded.value(layer, each.name)) != _canonical(now.value(layer, each.name))
    )


def unknown(envelope: Envelope) -> tuple[str, ...]:
    """Return the fields that are not known, as `LAYER.FIELD`."""
    return tuple(f"{layer}.{each.name}" for layer in Layer for each in FIELDS[layer] if envelope.value(layer, each.name) == UNKNOWN)


def field_of(layer: Layer, name: str) -> Field:
    """Return what is said of one field. Raises KeyError."""
    return _BY_NAME[layer, name]


def encode(envelope: Envelope) -> bytes:
    """Return the canonical bytes."""
    return _encoded(envelope.layers, outcomes=True)


def decode(data: bytes) -> Envelope:
    """Read what `encode` wrote.

    Raises:
        Corrupt: these are not the canonical bytes of an envelope.
        TooNew: a later version wrote them.
    """
    if len(data) > ENVELOPE_BYTES:
        raise Corrupt(f"an envelope has at most {ENVELOPE_BYTES} bytes, not {len(data)}")
    made = parse_json(data)
    if not isinstance(made, dict) or not isinstance(made.get("v"), int) or isinstance(made.get("v"), bool):
        raise Corrupt("not an envelope: no JSON object with a version")
    version = made["v"]
    if isinstance(version, int) and version > FORMAT:
        raise TooNew(f"the envelope has format {version}, this program reads up to {FORMAT}", hint="update secondtake")
    layers = made.get("layers")
    if version != FORMAT or set(made) != {"v", "layers"} or not isinstance(layers, dict) or set(layers) != set(Layer):
        raise Corrupt("not an envelope: other layers than the seven")
    fields = {Layer(name): value for name, value in layers.items()}
    if not all(isinstance(value, dict) for value in fields.values()):
        raise Corrupt("not an envelope: a layer is no object")
    try:
        envelope = Envelope({layer: value for layer, value in fields.items() if isinstance(value, dict)})
    except BadInput as error:
        raise Corrupt(str(error)) from error
    if encode(envelope) != data:
        raise Corrupt("not an envelope in its one form")
    return envelope


_BY_NAME: Mapping[tuple[Layer, str], Field] = {(layer, each.name): each for layer, fields in FIELDS.items() for each in fields}


def _names(layer: Layer) -> frozenset[str]:
    return frozenset(each.name for each in FIELDS[layer])


def _wrong(layers: Mapping[Layer, Mapping[str, Json]]) -> str | None:
    """What is not as it must be, or None."""
    if set(layers) != set(Layer):
        return "other layers than the seven"
    for layer in Layer:
        differing = sorted(_names(layer) ^ set(layers[layer]))
        if differing:
            return f"{'no' if differing[0] in layers[layer] else 'missing'} field {layer}.{differing[0]}"
    return None


def _encoded(layers: Mapping[Layer, Mapping[str, Json]], *, outcomes: bool) -> bytes:
    made: Json = {
        str(layer): {each.name: layers[layer][each.name] for each in FIELDS[layer] if outcomes or not each.outcome} for layer in Layer
    }
    return _canonical({"v": FORMAT, "layers": made})


def _canonical(value: Json) -> bytes:
    """Raises BadInput: not JSON, deeper than it may be, or with a number no double carries."""
    try:
        data = dump_json(value)
        document = parse_json(b'{"_":%b}' % data)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"not an envelope: a value is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise BadInput("not an envelope: a value has no canonical form")
    return dump_json(document["_"])
