"""The sections that the reports of all tasks have: learning rates, share of the mean, speed."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...reporting.section import Section, Shares, mean_share_section, step_size_section
from ...reporting.speed import AGAIN, Timed, checks_of, speed_section
from ..published import MACHINES, RESULTS
from ..results import Result, by_condition
from ..runs import SECOND_LAYERNORM

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
        "It is measured on sentences of the dev set, with the reference's words, after N updates. "
        "A row without a norm is measured where its norms would be.",
    )


def _shares(result: Result) -> Shares:
    left_out = _ENDS if result.log["options"].get("transformer_norm_position") == "post" else ()
    found = {}
    for update, paths in result.log["mean_share"].items():
        shares = {path: share for path, share in paths.items() if path not in left_out}
        found[f"N = {int(update):,}"] = shares
    return found


def speed_of(results: Sequence[Result], processes: Sequence[Mapping[str, Any]]) -> Section | None:
    """Returns the section of the times of the main conditions, or `None` without any.

    See `LogStore.read_times`.
    """
    if not processes:
        return None
    times = processes[0]
    updates = processes[0]["updates"]["float32"]
    main = {
        each.condition.normalization: each.condition
        for each in reversed(results)
        if each.condition.section == "main"
    }
    labels = {kind: main[kind].label for kind in updates if kind in main}
    if not labels:
        return None
    if "none" in labels:
        labels["none"] = "without a norm"
    first = next(each for each in results if each.condition.normalization in labels)
    published = {
        kind: RESULTS[main[kind].name].seconds for kind in labels if main[kind].name in RESULTS
    }
    if "layernorm" not in published:  # all others are compared with it
        published = {}
    seconds = []
    for each in processes:
        rounds = {kind: found["rounds"] for kind, found in each["updates"]["float32"].items()}
        seconds.append(
            rounds | ({AGAIN: rounds[SECOND_LAYERNORM]} if SECOND_LAYERNORM in rounds else {})
        )
    options = first.log["options"]
    threads = f"{times['threads']} thread{'s' * (times['threads'] != 1)}"
    text = (
        f"From `benchmarks/training.py` of commit {times['commit']} on {threads}, compiled by "
        "XLA. All kinds have the same options and take turns on the same batches of this training "
        f"text. The paper's are of {MACHINES[first.condition.model_type]}; ours has embedding "
        f"{options['embedding_size']} and state {options['state_size']}."
    )
    timed = Timed("XLA", seconds, checks_of(processes))
    return speed_section([timed], labels, published, text, processes)
