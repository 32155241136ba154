"""The claims that are judged by differences between two conditions, paired by seed."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..reporting.judging import Hypothesis, Question, paired
from .results import Result, by_condition
from .schedule import read_conditions

MARGIN = 0.5  # BLEU
_NONE = "the model without a norm"


class Measure(NamedTuple):
    """A value of a result by which conditions are compared."""

    unit: str  # as in `Question`
    value: Callable[[Result], float]  # reads it from a result; NaN if the log lacks it
    digits: int  # decimals of a difference


MEASURES = {  # by their names in a `Hypothesis`
    "bleu": Measure(" BLEU", lambda result: result.bleu, 2),
    "chrf": Measure(" chrF", lambda result: result.chrf, 2),
    "dev": Measure(" dev BLEU", lambda result: result.dev, 1),
    "valid_loss": Measure(" nats of validation loss", lambda result: result.valid_loss, 3),
    "train_loss": Measure(
        " nats of training loss",
        lambda result: result.log["validations"][-1].get("train_loss", math.nan),
        3,
    ),
}

HYPOTHESES = (
    Hypothesis(
        "layernorm-recipe", "none-recipe", "higher", f"LayerNorm translates better than {_NONE}"
    ),
    Hypothesis(
        "rmsnorm-recipe", "none-recipe", "higher", f"RMSNorm translates better than {_NONE}"
    ),
    Hypothesis(
        "layernorm-recipe",
        "none-recipe",
        "lower",
        f"Figure 1: LayerNorm's training loss is below that of {_NONE} after the same number of updates",
        "-1.70 after 9,900",
        measure="train_loss",
    ),
    Hypothesis(
        "rmsnorm-centre",
        "layernorm-centre",
        "higher",
        "Figure 4: RMSNorm bears initial weights around 0.2 better than LayerNorm",
        "best BLEU 16.0 against 3.8",
        measure="dev",
    ),
)


def questions(
    results: Sequence[Result], hypotheses: Sequence[Hypothesis] = HYPOTHESES
) -> list[Question]:
    """Returns the claims whose conditions share a seed, and all that have planned seeds."""
    done: dict[str, dict[int, Result]] = {}
    for each in results:
        done.setdefault(each.condition.name, {})[each.seed] = each
    conditions = [*read_conditions(), *by_condition(results)]
    labels = {condition.name: condition.label for condition in conditions}
    found = []
    for asked in hypotheses:
        measure = MEASURES[asked.measure or "bleu"]
        differences = paired(done.get(asked.one, {}), done.get(asked.other, {}), measure.value)
        if differences or asked.planned > 2:
            pair = f"{labels[asked.one]} minus {labels[asked.other]}"
            common = {"differences": differences, "unit": measure.unit, "digits": measure.digits}
            found.append(Question(**vars(asked), pair=pair, **common))
    return found
