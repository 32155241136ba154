"""Parameters of tests that run with the slow tests only."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def slow(*values: Any) -> list[Any]:
    """Returns the values as parameters of slow tests."""
    return [pytest.param(value, marks=pytest.mark.slow) for value in values]


def called(value: Any) -> str:
    """Returns the name of a function, or the text of another value."""
    return getattr(value, "__name__", str(value))


def quick_one_of(
    count: int, values: Iterable[Any], name: Callable[[Any], str] = called
) -> list[Any]:
    """Returns the values as parameters of slow tests, but every `count`-th of a quick one."""
    return [
        pytest.param(value, id=name(value), marks=[pytest.mark.slow] * bool(i % count))
        for i, value in enumerate(values)
    ]
