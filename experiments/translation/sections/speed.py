"""Time of an update with every kind of normalization (Tables 2 and 4)."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...reporting.section import Section
from ...reporting.speed import AGAIN, Timed, checks_of, speed_section
from ..measure import AGAIN as SECOND
from ..published import MACHINES, RESULTS
from ..results import Result


def section(results: Sequence[Result], processes: Sequence[Mapping[str, Any]]) -> Section | None:
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
    conditions = {
        kind: RESULTS[condition.name].seconds
        for kind, condition in main.items()
        if condition.name in RESULTS and kind in labels
    }
    names = (
        ("baseline", "layernorm") if first.condition.model_type == "rnn" else ("", "post-layernorm")
    )
    published = {
        kind: RESULTS[name].seconds
        for kind, name in zip(("none", "layernorm"), names, strict=True)
        if name
    }
    seconds = [_rounds(each) for each in processes]
    options = first.log["options"]
    threads = f"{times['threads']} thread{'s' * (times['threads'] != 1)}"
    text = (
        f"From `benchmarks/training.py` of commit {times['commit']} on {threads}, compiled by XLA. All kinds have the "
        f"same options and take turns on the same batches of this training text. The paper's are of "
        f"{MACHINES[first.condition.model_type]}; ours has embedding {options['embedding_size']} and state "
        f"{options['state_size']}."
    )
    timed = Timed("XLA", seconds, checks_of(processes))
    return speed_section([timed], labels, conditions | published, text, processes)


def _rounds(process: Mapping[str, Any]) -> dict[str, list[float]]:
    """Returns the seconds of each round by the name of the kind, as `Timed` wants them."""
    updates = process["updates"]["float32"].items()
    return {AGAIN if kind == SECOND else kind: found["rounds"] for kind, found in updates}
