"""The list of adapters."""

from __future__ import annotations

from pathlib import Path

from secondtake.cassettes import adapters
from secondtake.cassettes.adapters import ADAPTERS, registry
from tests.cassettes.adapters.formats import FORMATS


def test_every_adapter_is_listed_once_and_meets_the_contract() -> None:
    """A new adapter cannot be left out of the contract suite."""
    assert {form.adapter for form in FORMATS} == set(ADAPTERS)
    assert all(name == adapter.name for name, adapter in ADAPTERS.items())
    folder = Path(registry.__file__).parent
    classes = {type(adapter).__module__.rpartition(".")[2] for adapter in ADAPTERS.values()}
    assert all((folder / f"{name}.py").is_file() for name in classes)
    assert len(classes) == len(ADAPTERS)


def test_the_door_lists_what_it_gives() -> None:
    """STYLE 2: public names are grouped and true."""
    assert all(hasattr(adapters, name) for name in adapters.__all__)
    assert sorted(set(adapters.__all__)) == sorted(adapters.__all__)
