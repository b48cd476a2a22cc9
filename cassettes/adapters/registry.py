"""Every adapter, in the order in which they are asked: those whose paths cannot be mistaken first, then by shape (PROVIDERS A1)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from secondtake.cassettes.adapters.anthropic import Anthropic
from secondtake.cassettes.adapters.azure import Azure
from secondtake.cassettes.adapters.base import Adapter
from secondtake.cassettes.adapters.bedrock import Bedrock
from secondtake.cassettes.adapters.gateway import Gateway
from secondtake.cassettes.adapters.gemini import Gemini
from secondtake.cassettes.adapters.ollama import Ollama
from secondtake.cassettes.adapters.openai_chat import OpenAIChat
from secondtake.cassettes.adapters.openai_responses import OpenAIResponses
from secondtake.cassettes.adapters.vertex import Vertex

_ORDER: tuple[Adapter, ...] = (
    Bedrock(), Vertex(), Azure(), Gemini(), Ollama(), Anthropic(), OpenAIResponses(), Gateway(), OpenAIChat(),
)  # fmt: skip

ADAPTERS: Mapping[str, Adapter] = MappingProxyType({adapter.name: adapter for adapter in _ORDER})
