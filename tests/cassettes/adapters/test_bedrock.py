"""The `bedrock` adapter."""

from __future__ import annotations

from tests.cassettes.adapters.contract import AdapterContract
from tests.cassettes.adapters.formats import forms_of


class TestBedrock(AdapterContract):
    forms = forms_of("bedrock")
