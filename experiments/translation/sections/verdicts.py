"""Verdicts on the paper's claims: the words that they share."""

from collections.abc import Sequence
from statistics import mean

from ..results import Result
from .differences import differences

RECIPES = "; the recipes differ too"
_LEARNED = 5.0  # mean dev BLEU from which a row counts as one that learns to translate


def seeds(count: int) -> str:
    """Returns a number of seeds in words.

    >>> seeds(1)
    '1 seed'
    """
    return f"{count} seed{'' if count == 1 else 's'}"


def not_shown(count: int) -> str:
    """Returns the verdict on a claim that this many seeds can neither show nor refute."""
    return f"not shown by {seeds(count)}"


def on_recipes(one: Result, other: Result) -> str:
    """Returns what to add to a verdict if two trainings differ in more than the norm."""
    return RECIPES if differences(one, other) else ""


def on_failure(results: Sequence[Result]) -> str:
    """Returns what to add to a verdict if it compares with a row that does not learn to translate."""
    failed = mean(result.dev for result in results) < _LEARNED
    return f", but {results[0].row.label} does not learn to translate" if failed else ""
