"""The `azure-openai` adapter."""

from __future__ import annotations

from tests.cassettes.adapters.contract import AdapterContract
from tests.cassettes.adapters.formats import forms_of


class TestAzure(AdapterContract):
    forms = forms_of("azure-openai")
