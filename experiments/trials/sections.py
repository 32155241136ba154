"""Sections that the reports of all Keras tasks share: learning rates, the share of the mean, and speed."""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from types import MappingProxyType
from typing import Any

from matplotlib.figure import Figure

from ..reporting.section import Section
from ..reporting.speed import Timed, speed_section
from ..reporting.step_sizes import step_size_section
from ..reporting.styles import Style, styles
from .trial import GRID_SEED, Setting, Trial, TrialRow, lowest

Logs = Mapping[Trial, Mapping[str, Any]]


def trial_styles(rows: Sequence[TrialRow]) -> dict[TrialRow, Style]:
    """Returns the style of each row. The paper's rows have the style of their kind, added rows have others."""
    found = styles({row.name: row.name if row.paper else None for row in rows})
    return {row: found[row.name] for row in rows}


def logs_by_row(logs: Logs, setting: Setting) -> dict[TrialRow, dict[int, Mapping[str, Any]]]:
    """Returns the logs of the reported seeds in a setting, by row and seed."""
    found: dict[TrialRow, dict[int, Mapping[str, Any]]] = {}
    for trial, log in logs.items():
        if trial.setting == setting and trial.seed != GRID_SEED:
            found.setdefault(trial.row, {})[trial.seed] = log
    return found


def settings_of(logs: Logs) -> list[Setting]:
    """Returns the settings that have trials."""
    return list(dict.fromkeys(trial.setting for trial in logs))


def rows_in(logs: Logs) -> list[TrialRow]:
    """Returns the rows that have trials."""
    return list(dict.fromkeys(trial.row for trial in logs))


def step_sizes(logs: Logs, metric: str, label: str) -> Section | None:
    """Returns the section of the grid of learning rates, or `None` without any.

    Args:
        logs: The logs so far.
        metric: Key of a validation; the lowest value is the best.
        label: The metric in words.
    """
    grid: dict[str, dict[str, dict[float, float]]] = {}
    values = {trial: lowest(log, metric) for trial, log in logs.items() if trial.seed == GRID_SEED}
    for trial, value in values.items():
        rows = grid.setdefault(trial.setting.label, {})
        rows.setdefault(trial.row.label, {})[trial.step_size] = value
    styles = {row.label: style for row, style in trial_styles(rows_in(values)).items()}
    data = [{"trial": trial.name, metric: value} for trial, value in values.items()]
    return step_size_section(grid, styles, label, 4, data)


def share_section(logs: Logs, over: str = "the units") -> Section | None:
    """Returns the section of the share of the mean in each norm's input, or `None` without any.

    Args:
        logs: The logs so far.
        over: What the mean runs over, in words.
    """
    shares = {
        (setting, row): [log["mean_share"] for log in done.values()]
        for setting in settings_of(logs)
        for row, done in logs_by_row(logs, setting).items()
    }
    if not shares:
        return None
    layers = list(next(iter(shares.values()))[0]["first"])
    cells = [
        [
            f"{row.label}, {setting.label}",
            *(_share(found, when, layer) for layer in layers for when in ("first", "last")),
        ]
        for (setting, row), found in shares.items()
    ]
    return Section(
        name="mean_share",
        title="The share of the mean",
        text=[
            f"E[mean(a)²] / E[mean(a²)] of inputs a of the norms, with the means over {over}: the part of the "
            "mean square that LayerNorm's centring removes. It is measured on validation data before and after "
            "training. The table has the mean over the seeds and, in brackets, their range."
        ],
        columns=["", *(f"{layer}, {when}" for layer in layers for when in ("before", "after"))],
        rows=cells,
        data=[{"row": row.name, "setting": setting.name, "shares": found} for (setting, row), found in shares.items()],
        plot=lambda figure: _plot_shares(figure, shares, layers),
    )


def _share(found: Sequence[Mapping[str, Any]], when: str, layer: str) -> str:
    values = [each[when][layer] for each in found]
    return f"{mean(values):.2%} [{min(values):.2%}, {max(values):.2%}]"


def _plot_shares(figure: Figure, shares: Mapping[tuple[Setting, TrialRow], Any], layers: Sequence[str]) -> None:
    settings = list(dict.fromkeys(setting for setting, _ in shares))
    count = max(sum(each == setting for each, _ in shares) for setting in settings)
    width = max(9.5, 0.16 * count * len(layers) * len(settings))
    figure.set(size_inches=(width, 4.6), layout_engine="constrained")
    all_axes = figure.subplots(1, len(settings), squeeze=False, sharey=True)[0]
    for axes, setting in zip(all_axes, settings, strict=True):
        rows = [row for each, row in shares if each == setting]
        for number, (row, style) in enumerate(trial_styles(rows).items()):
            shift = 0.8 / len(rows) * (number - (len(rows) - 1) / 2)
            for at, layer in enumerate(layers):
                values = [each["last"][layer] for each in shares[setting, row]]
                label = {"label": row.label} if not at else {}
                axes.plot([at + shift] * len(values), values, style.marker, color=style.color, alpha=0.7, **label)
        axes.set_xticks(range(len(layers)), layers, rotation=30, ha="right")
        axes.set(yscale="log", ylabel="share after training, each seed", title=setting.label)
    figure.legend(*all_axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)


def times_section(
    times: Mapping[str, Any] | None,
    rows: Sequence[TrialRow],
    settings: Sequence[Setting],
    published: Mapping[str, float] = MappingProxyType({}),
) -> Section | None:
    """Returns the section of the times of updates, or `None` without any.

    Args:
        times: What `time_updates` returned, or `None`.
        rows: The rows.
        settings: The settings.
        published: The published times of the rows by their names, in any unit.
    """
    if not times:
        return None
    timed = [
        Timed(f"{setting.label}, {mode}", seconds)
        for setting in settings
        for mode, seconds in times["seconds"].get(setting.name, {}).items()
    ]
    text = (
        f"On {times['cores']} processor cores, commit {times['commit']}; compiled by XLA, and as plain operations of a "
        "graph."
    )
    return speed_section(timed, {row.name: row.label for row in rows}, published, text, times)


def samples_sections(
    logs: Logs, title: str, text: str, column: str, plot: Callable[[Figure, Mapping[str, Any]], None]
) -> list[Section]:
    """Returns the section of what the networks made after training, with the first seed; no section without any.

    Args:
        logs: The logs so far; each has `samples`.
        title: Title of the section.
        text: Its paragraph.
        column: What the samples are.
        plot: Draws the samples of each row, by its label, on an empty figure.
    """
    made = {
        f"{row.label}, {setting.label}": found[min(found)]["samples"]
        for setting in settings_of(logs)
        for row, found in logs_by_row(logs, setting).items()
    }
    if not made:
        return []
    rows = [[label, str(len(found))] for label, found in made.items()]
    return [Section("samples", title, [text], ["", column], rows, made, lambda figure: plot(figure, made))]
