"""Sections of all Keras tasks: learning rates, the share of the mean, and speed."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..reporting.section import Section, mean_share_section, step_size_section
from ..reporting.speed import Timed, checks_of, speed_section
from .run import GRID_SEED, Condition, Run, Setting, lowest

Logs = Mapping[Run, Mapping[str, Any]]


def logs_by_condition(
    logs: Logs, setting: Setting
) -> dict[Condition, dict[int, Mapping[str, Any]]]:
    """Returns the logs of the reported seeds in a setting, by condition and seed."""
    found: dict[Condition, dict[int, Mapping[str, Any]]] = {}
    for run, log in logs.items():
        if run.setting == setting and run.seed != GRID_SEED:
            found.setdefault(run.condition, {})[run.seed] = log
    return found


def settings_of(logs: Logs) -> list[Setting]:
    return list(dict.fromkeys(run.setting for run in logs))


def step_sizes_section(logs: Logs, metric: str, label: str) -> Section | None:
    """Returns the section of the grid of learning rates, or `None` without any.

    The lowest metric chooses.
    """
    grid: dict[str, dict[str, dict[float, float]]] = {}
    values = {run: lowest(log, metric) for run, log in logs.items() if run.seed == GRID_SEED}
    for run, value in values.items():
        conditions = grid.setdefault(run.setting.label, {})
        conditions.setdefault(run.condition.label, {})[run.step_size] = value
    data = [{"trial": run.name, metric: value} for run, value in values.items()]
    return step_size_section(grid, label, 4, data)


def share_section(logs: Logs, over: str = "the units") -> Section | None:
    """Returns the section of the share of the mean in each norm's input, or `None`.

    The mean is over some axes, in words.
    """
    settings = settings_of(logs)
    shares = {}
    for setting in settings:
        suffix = f", {setting.label}" if len(settings) > 1 else ""
        for condition, found in logs_by_condition(logs, setting).items():
            measured = [log["mean_share"] for log in found.values()]
            shares[condition.label + suffix] = [
                {"before": each["first"], "after": each["last"]} for each in measured
            ]
    text = "It is measured on validation data, before and after the training."
    return mean_share_section(shares, over, text)


def times_section(
    times: Sequence[Mapping[str, Any]], logs: Logs, published: Mapping[str, float]
) -> Section | None:
    """Returns the section of what `time_updates` returned in each process, or `None` without any.

    See `Experiment`.
    """
    if not times:
        return None
    checks = checks_of(times)
    timed = []
    for setting in settings_of(logs):
        for mode in times[0]["seconds"].get(setting.name, ()):
            seconds = [each["seconds"][setting.name][mode] for each in times]
            timed.append(Timed(f"{setting.label}, {mode}", seconds, checks))
    cores = " and ".join(sorted({str(each["cores"]) for each in times}))
    commits = " and ".join(sorted({each["commit"] for each in times}))
    measured = times[0] if len(times) == 1 else {"processes": times}
    text = (
        f"On {cores} processor cores at most, commit {commits}; compiled by XLA, and as plain "
        "operations of a graph."
    )
    return speed_section(
        timed, {run.condition.name: run.condition.label for run in logs}, published, text, measured
    )
