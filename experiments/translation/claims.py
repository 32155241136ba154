"""The claims that are judged by differences between conditions, paired by seed."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ..reporting.judging import Hypothesis, Question
from .results import Result
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
        f"Figure 1: LayerNorm's training loss is below that of {_NONE} after the same number of "
        "updates",
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


class Contrast(NamedTuple):
    """A weighted sum of the values of some conditions, paired by seed."""

    label: str
    weights: Mapping[str, float]  # by the names of the conditions

    def differences(
        self, results: Sequence[Result], value: Callable[[Result], float]
    ) -> list[float]:
        """Returns its value for each seed that all its conditions have."""
        total = dict.fromkeys(shared_seeds(results, self.weights), 0.0)
        found = {(each.condition.name, each.seed): each for each in results}
        for seed, (name, weight) in itertools.product(total, self.weights.items()):
            total[seed] += weight * value(found[name, seed])
        return list(total.values())


def shared_seeds(results: Sequence[Result], names: Iterable[str]) -> list[int]:
    """Returns the seeds that the conditions of all these names have."""
    seeds: dict[str, set[int]] = {name: set() for name in names}
    for each in results:
        seeds.get(each.condition.name, set()).add(each.seed)
    return sorted(set.intersection(*seeds.values()))


def questions(
    results: Sequence[Result], hypotheses: Sequence[Hypothesis] = HYPOTHESES
) -> list[Question]:
    """Returns the claims whose conditions share a seed, and all that have planned seeds."""
    conditions = [*read_conditions(), *(each.condition for each in results)]
    labels = {condition.name: condition.label for condition in conditions}
    found = []
    for asked in hypotheses:
        label = f"{labels[asked.one]} minus {labels[asked.other]}"
        pair = Contrast(label, {asked.one: 1, asked.other: -1})
        measure = MEASURES[asked.measure or "bleu"]
        values = {
            "differences": pair.differences(results, measure.value),
            "unit": measure.unit,
            "digits": measure.digits,
        }
        if values["differences"] or asked.planned > 2:
            found.append(Question(**vars(asked), pair=label, **values))
    return found
