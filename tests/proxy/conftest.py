"""Coroutine tests run on a loop of their own, with a bound: a hang is a failure that says where."""

from __future__ import annotations

import asyncio
import inspect

import pytest

BOUND_S = 60
"""Far above what any test here takes; only a hang reaches it."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    asyncio.run(asyncio.wait_for(pyfuncitem.obj(**arguments), BOUND_S))
    return True
