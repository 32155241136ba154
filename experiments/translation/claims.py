"""The claims that are judged by differences between two rows, paired by seed."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..reporting.judging import Question
from .plan import read_rows
from .results import Result

MARGIN = 0.5  # BLEU
_NONE = "the model without a norm"


class Measure(NamedTuple):
    """A value of a result by which rows are compared.

    Args:
        name: Its name in a `Hypothesis`.
        unit: As in `Question`.
        value: Reads it from a result; NaN if the log lacks it.
        digits: Decimals of a difference.
    """

    name: str
    unit: str
    value: Callable[[Result], float]
    digits: int = 1


MEASURES = {
    each.name: each
    for each in (
        Measure("bleu", " BLEU", lambda result: result.bleu, 2),
        Measure("chrf", " chrF", lambda result: result.chrf, 2),
        Measure("dev", " dev BLEU", lambda result: result.dev),
        Measure("valid_loss", " nats of validation loss", lambda result: result.valid_loss, 3),
        Measure(
            "train_loss",
            " nats of training loss",
            lambda result: result.log["validations"][-1].get("train_loss", math.nan),
            2,
        ),
    )
}


class Hypothesis(NamedTuple):
    """A claim about two rows.

    Args:
        one: The name of a row.
        other: The name of another.
        outcome: As in `Question`, of the first row's value less the second's.
        claim: The claim in words.
        paper: What the paper has.
        measure: The name of a measure.
        margin: As in `Question`.
        planned: As in `Question`.
        family: As in `Question`.
    """

    one: str
    other: str
    outcome: str
    claim: str
    paper: str = "not in the paper"
    measure: str = "bleu"
    margin: float = 0.0
    planned: int = 2
    family: str = ""


HYPOTHESES = (
    Hypothesis("layernorm-recipe", "none-recipe", "higher", f"LayerNorm translates better than {_NONE}"),
    Hypothesis("rmsnorm-recipe", "none-recipe", "higher", f"RMSNorm translates better than {_NONE}"),
    Hypothesis(
        "layernorm-recipe",
        "none-recipe",
        "lower",
        f"Figure 1: LayerNorm's training loss is below that of {_NONE} after the same number of updates",
        "-1.70 after 9,900",
        "train_loss",
    ),
    Hypothesis(
        "rmsnorm-centre",
        "layernorm-centre",
        "higher",
        "Figure 4: RMSNorm bears initial weights around 0.2 better than LayerNorm",
        "best BLEU 16.0 against 3.8",
        "dev",
    ),
)


def questions(results: Sequence[Result], hypotheses: Sequence[Hypothesis] = HYPOTHESES) -> list[Question]:
    """Returns the claims whose rows share a seed, and all that have planned seeds."""
    done = {(each.row.name, each.seed): each for each in results}
    labels = {row.name: row.label for row in [*read_rows(), *(each.row for each in results)]}
    found = []
    for asked in hypotheses:
        shared = sorted(seed for name, seed in done if name == asked.one and (asked.other, seed) in done)
        measure = MEASURES[asked.measure]
        values = [measure.value(done[asked.one, seed]) - measure.value(done[asked.other, seed]) for seed in shared]
        pair = f"{labels[asked.one]} minus {labels[asked.other]}"
        if shared or asked.planned > 2:
            found.append(
                Question(
                    asked.claim,
                    asked.paper,
                    pair,
                    asked.outcome,
                    values,
                    measure.unit,
                    asked.margin,
                    measure.digits,
                    asked.planned,
                    asked.family,
                )
            )
    return found
