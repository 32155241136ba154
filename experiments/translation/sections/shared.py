"""The sections that the reports of all tasks have: learning rates and the share of the mean."""

from collections.abc import Sequence

from ...reporting.section import Section
from ...reporting.tables import Shares, mean_share_section, step_size_section
from ..results import Result, by_condition

# Older logs have these of models without a norm too. Post-norm models have no norm there.
_ENDS = ("encoder.final_norm", "decoder.final_norm")


def step_sizes(grid: Sequence[Result]) -> Section | None:
    """Returns the section of the trainings that choose a learning rate, or `None` without any."""
    conditions = by_condition(grid)
    found = {}
    for condition, done in conditions.items():
        found[condition.label] = {each.log["options"]["learning_rate"]: each.dev for each in done}
    data = {condition.name: found[condition.label] for condition in conditions}
    return step_size_section({"": found} if found else {}, "dev BLEU", 1, data)


def mean_share(results: Sequence[Result]) -> Section | None:
    """Returns the section of the conditions that were measured, or `None` without any."""
    conditions = by_condition(result for result in results if "mean_share" in result.log)
    return mean_share_section(
        {condition.label: list(map(_shares, done)) for condition, done in conditions.items()},
        "its units",
        "It is measured on sentences of the dev set, with the reference's words, after N updates. A row without a norm "
        "is measured where its norms would be.",
    )


def _shares(result: Result) -> Shares:
    left_out = _ENDS if result.log["options"].get("transformer_norm_position") == "post" else ()
    found = {}
    for update, paths in result.log["mean_share"].items():
        shares = {path: share for path, share in paths.items() if path not in left_out}
        found[f"N = {int(update):,}"] = shares
    return found
