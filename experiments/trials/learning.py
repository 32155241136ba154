"""The section that every Keras task begins with: how its kinds of normalization learn, and how they compare."""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from types import MappingProxyType
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from ..reporting.intervals import holm, signed, spread, t_interval, t_test
from ..reporting.section import Claim, Section
from ..reporting.styles import band
from .sections import Logs, logs_by_row, settings_of, trial_styles
from .trial import Setting, TrialRow, or_infinite

Log = Mapping[str, Any]
Done = Mapping[TrialRow, Mapping[int, Log]]  # the log of each seed of each row


class Column(NamedTuple):
    """A value of a training in the table."""

    label: str
    value: Callable[[Log], float]
    digits: int
    unit: str = ""


class Curve(NamedTuple):
    """A curve over the updates in the picture."""

    part: str  # of a log: `train` or `validations`
    key: str
    label: str
    scale: str = "log"  # of the vertical axis


class Expectation(NamedTuple):
    """What a paper says of two kinds.

    Args:
        one: Name of a row.
        other: Name of the row that it is compared with.
        outcome: `lower`, `higher` or `equal`: the value of `one`, compared with that of `other`.
        claim: The claim in words.
        paper: Where it stands, with the published values if there are any.
        setting: Name of the setting that it is about; an empty string stands for all.
    """

    one: str
    other: str
    outcome: str
    claim: str
    paper: str
    setting: str = ""


class Comparison(NamedTuple):
    """The value by which kinds are compared, paired over the seeds.

    Args:
        label: The value in words.
        value: Reads it from a log.
        margin: Two kinds count as equal if the 90% interval of their difference lies between -margin and margin. It is
            set before the trainings.
        unit: Unit of margin and differences. With `%`, differences are relative.
        expectations: The pairs of rows that are compared.
        digits: Decimals of the differences.
    """

    label: str
    value: Callable[[Log], float]
    margin: float
    unit: str
    expectations: Sequence[Expectation]
    digits: int = 1

    def differences(self, one: Mapping[int, Log], other: Mapping[int, Log]) -> list[float]:
        """Returns the difference for each seed that both rows have; NaN if one of the two diverged."""
        pairs = [(self.value(one[seed]), self.value(other[seed])) for seed in sorted(one.keys() & other.keys())]
        return [self._difference(*pair) if all(map(math.isfinite, pair)) else math.nan for pair in pairs]

    def _difference(self, a: float, b: float) -> float:
        return 100 * (a / b - 1) if self.unit == "%" else a - b


_SIGNIFICANT = 0.05  # p-value after Holm's correction
_JUDGING = (
    "The claims on learning are judged by differences that are paired over the seeds. Two kinds are equal if the 90% "
    "interval of their difference lies within a margin that was set before the trainings. Otherwise a difference is "
    "shown if its p-value (Student's t), corrected by Holm's method for all claims on learning, is at most 0.05."
)


class Learning(NamedTuple):
    """What the section of a task shows.

    Args:
        title: Title of the section.
        text: Its paragraph.
        columns: The values of the table.
        curves: The curves of the picture, one below the other.
        comparisons: What is compared, and what the papers say of it.
        published: The published value of each row by its name.
    """

    title: str
    text: str
    columns: Sequence[Column]
    curves: Sequence[Curve]
    comparisons: Sequence[Comparison]
    published: Mapping[str, str] = MappingProxyType({})


def learning_section(logs: Logs, learning: Learning) -> Section | None:
    """Returns the section, or `None` if no reported seed is done."""
    done = {setting: rows for setting in settings_of(logs) if (rows := logs_by_row(logs, setting))}
    if not done:
        return None
    cells = [
        [f"{row.label}, {setting.label}", str(len(found)), _step_size(found), *_values(learning, row, found)]
        for setting, rows in done.items()
        for row, found in rows.items()
    ]
    return Section(
        name="learning",
        title=learning.title,
        text=[learning.text, _JUDGING],
        columns=["", "seeds", "step size", *(column.label for column in learning.columns)]
        + (["published"] if learning.published else []),
        rows=cells,
        data={
            setting.name: {
                row.name: {str(seed): _data(learning, log) for seed, log in found.items()}
                for row, found in rows.items()
            }
            for setting, rows in done.items()
        },
        plot=lambda figure: _plot(figure, done, learning.curves),
        claims=_claims(learning.comparisons, done),
    )


def best(key: str, metric: str) -> Callable[[Log], float]:
    """Returns the function that reads a value of the validation with the lowest metric from a log."""
    return lambda log: min(log["validations"], key=lambda each: or_infinite(each[metric]))[key]


def last(key: str) -> Callable[[Log], float]:
    """Returns the function that reads a value of the last validation from a log."""
    return lambda log: log["validations"][-1][key]


def mean_of(key: str) -> Callable[[Log], float]:
    """Returns the function that reads the mean of a value over all validations, which tells how fast it changes."""
    return lambda log: mean(each[key] for each in log["validations"])


def mean_loss(log: Log) -> float:
    """Returns the mean training loss over all updates, which tells how fast the loss falls."""
    return mean(each["loss"] for each in log["train"])


def last_loss(log: Log) -> float:
    """Returns the mean training loss of the last tenth of the updates."""
    losses = [each["loss"] for each in log["train"]]
    return mean(losses[-max(1, len(losses) // 10) :])


def _step_size(found: Mapping[int, Log]) -> str:
    return f"{next(iter(found.values()))['options']['step_size']:.2g}"


def _values(learning: Learning, row: TrialRow, found: Mapping[int, Log]) -> list[str]:
    values = [
        cell([column.value(log) for log in found.values()], column.digits, column.unit) for column in learning.columns
    ]
    return [*values, learning.published.get(row.name, "")] if learning.published else values


def cell(values: Sequence[float], digits: int, unit: str = "") -> str:
    """Returns the values of some seeds as a cell of a table: their mean and spread, or how many diverged."""
    diverged = len(values) - sum(map(math.isfinite, values))
    if diverged:
        return f"{diverged} of {len(values)} diverged"
    return spread(values, digits) + (unit and f" {unit}")


def _data(learning: Learning, log: Log) -> dict[str, float]:
    return {column.label: column.value(log) for column in learning.columns}


class _Judged(NamedTuple):
    """An expectation with the differences that judge it."""

    expected: Expectation
    comparison: Comparison
    setting: Setting
    differences: Sequence[float]

    @property
    def diverged(self) -> bool:
        return not all(map(math.isfinite, self.differences))

    @property
    def testable(self) -> bool:
        return len(self.differences) > 1 and not self.diverged


def _claims(comparisons: Sequence[Comparison], done: Mapping[Setting, Done]) -> list[Claim]:
    """Judges what the papers say of the settings that are done."""
    found = []
    for comparison in comparisons:
        for setting, rows in done.items():
            logs = {row.name: each for row, each in rows.items()}
            for expected in comparison.expectations:
                if expected.setting in ("", setting.name) and {expected.one, expected.other} <= logs.keys():
                    differences = comparison.differences(logs[expected.one], logs[expected.other])
                    found.append(_Judged(expected, comparison, setting, differences))
    p_values = iter(holm([t_test(each.differences) for each in found if each.testable]))
    return [_claim(each, next(p_values) if each.testable else None) for each in found]


def _claim(judged: _Judged, p_value: float | None) -> Claim:
    """Returns a claim with its verdict; `p_value` is `None` if there is nothing to be tested."""
    expected, comparison, label = judged.expected, judged.comparison, judged.setting.label
    ours, verdict = "fewer than two seeds", "not judged yet"
    if judged.diverged:
        ours, verdict = f"a training diverged, {label}", "not shown"
    elif p_value is not None:
        interval = signed(t_interval(judged.differences), comparison.digits)
        ours = f"{interval}{comparison.unit} in {comparison.label}, {label}"
        verdict = _verdict(judged, p_value)
    return Claim(expected.claim, expected.paper, ours, verdict)


def _verdict(judged: _Judged, p_value: float) -> str:
    """Returns whether paired differences bear an expected outcome out."""
    outcome, comparison = judged.expected.outcome, judged.comparison
    middle = t_interval(judged.differences).middle
    direction = ("lower" if middle < 0 else "higher") if p_value <= _SIGNIFICANT else ""
    if outcome == "equal":
        narrow = t_interval(judged.differences, 0.9)
        _, _, brackets = signed(narrow, comparison.digits).partition(" ")
        margin = f"±{comparison.margin:g}{comparison.unit}"
        if narrow.within(comparison.margin):
            return f"borne out: 90% interval {brackets} within {margin}"
        return f"not borne out: {direction}" if direction else f"not shown: 90% interval {brackets} not within {margin}"
    if not direction:
        return "not shown" + (" after Holm's correction" if t_interval(judged.differences).excludes(0) else "")
    return "borne out" if direction == outcome else f"the opposite: {direction}"


def _plot(figure: Figure, done: Mapping[Setting, Done], curves: Sequence[Curve]) -> None:
    figure.set(size_inches=(4.75 * max(2, len(done)), 3.8 * len(curves)), layout_engine="constrained")
    all_axes = figure.subplots(len(curves), len(done), squeeze=False, sharex="col")
    for column, (setting, rows) in zip(all_axes.T, done.items(), strict=True):
        for axes, curve in zip(column, curves, strict=True):
            for row, style in trial_styles(list(rows)).items():
                _draw(axes, curve, row, list(rows[row].values()), style)
            axes.set(yscale=curve.scale, ylabel=curve.label)
            axes.set_ylim(_range_after_the_beginning(axes))
            if curve.scale == "log":
                low, high = axes.get_ylim()
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high > 5 * low else range(1, 10)))
                axes.yaxis.set_major_formatter("{x:g}")
                axes.yaxis.set_minor_formatter("{x:g}" if high < 2 * low else "")
        column[0].set_title(setting.label)
        column[-1].set_xlabel("updates")
    figure.legend(*all_axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)


def _range_after_the_beginning(axes) -> tuple[float, float]:
    """Returns the range of the drawn lines without the first tenth of the updates, where they fall most."""
    begin = max(line.get_xdata()[-1] for line in axes.lines) / 10
    values = [y for line in axes.lines for x, y in zip(*line.get_data(), strict=True) if x > begin and math.isfinite(y)]
    if not values:
        return axes.get_ylim()
    room = 0.05 * (max(values) - min(values)) or 0.05
    return min(values) - (0 if axes.get_yscale() == "log" else room), max(values) + room


def _draw(axes, curve: Curve, row: TrialRow, logs: Sequence[Log], style) -> None:
    """Draws the mean of a curve over the seeds, and their range."""
    found = [{each["update"]: each[curve.key] for each in log[curve.part]} for log in logs]
    x = sorted(set.intersection(*map(set, found)))
    values = [[each[update] for each in found] for update in x]
    axes.plot(x, list(map(mean, values)), label=row.label, **style.line(), markevery=max(1, len(x) // 10))
    band(axes, x, list(map(min, values)), list(map(max, values)), style)
