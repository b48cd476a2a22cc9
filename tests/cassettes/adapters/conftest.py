"""A contract class is run once for each wire format it names."""

from __future__ import annotations

import pytest


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    forms = getattr(metafunc.cls, "forms", None)
    if forms is not None and "form" in metafunc.fixturenames:
        metafunc.parametrize("form", forms, ids=lambda form: form.name)
