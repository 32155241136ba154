"""Verdicts on the paper's claims: words that they share, and the claims that are not tested."""

from collections.abc import Sequence

from ...reporting.section import Claim
from ..results import Result
from .differences import differences

RECIPES = "; the recipes differ too"
_OF_TRANSFORMERS = (
    Claim(
        "Table 4: a Transformer translates as well with RMSNorm as with LayerNorm, and an update takes less time",
        "BLEU 26.8 and 27.7 against 26.6 and 27.7 (2014, 2017), 6.9% less time",
        "no training",
        "not tested",
    ),
    Claim("Table 4: a Transformer without a norm fails to train", "it fails", "no training", "not tested"),
)


def untested(model_type: str) -> Sequence[Claim]:
    """Returns the claims on translation that trainings of an architecture do not test."""
    return () if model_type == "transformer" else _OF_TRANSFORMERS


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
