"""Compares the options of earlier work with the current ones."""

from collections.abc import Mapping
from typing import Any


def changed_options(was: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Returns the options that differ, with both values, as part of a sentence; an empty string if none does."""
    changed = sorted(name for name in was.keys() | wanted.keys() if was.get(name) != wanted.get(name))
    return ", ".join(f"{name} was {was.get(name)!r} and is now {wanted.get(name)!r}" for name in changed)
