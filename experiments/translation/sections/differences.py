"""Options in which two trainings differ besides their norm, their seed, and step sizes that a grid has chosen."""

from typing import Any

from ..results import Result

_MEANT = {"layer_normalization_type", "seed"}


def differences(one: Result, other: Result) -> str:
    """Returns the options that differ between two trainings as part of a sentence, or an empty string."""
    ours, theirs = one.log["options"], other.log["options"]
    meant = _MEANT | ({"learning_rate"} if one.step_size_chosen and other.step_size_chosen else set())
    names = sorted(name for name in (ours.keys() | theirs.keys()) - meant if ours.get(name) != theirs.get(name))
    return " and ".join(f"`{name}` {_value(ours, name)} instead of {_value(theirs, name)}" for name in names)


def _value(options: dict[str, Any], name: str) -> str:
    return str(options.get(name, "the default"))
