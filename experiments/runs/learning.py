"""Shows how the kinds of a Keras task learn, and how they compare."""

import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from statistics import mean
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from ..reporting.differences import differences_section
from ..reporting.intervals import spread, t_interval
from ..reporting.judging import RULE, Hypothesis, Question, judge, paired
from ..reporting.section import Section
from ..reporting.styles import draw_seeds, styles
from .run import Condition, Setting, or_infinite
from .sections import Logs, logs_by_condition, settings_of

_MARGIN = (
    "The margin of equality is a quarter of LayerNorm's effect, set when these trainings were done."
)
FASTER = "learns faster than the model without a norm"
NOT_IN_PAPERS = "not in the papers"
_NOTE = "margin set after the trainings"

Log = Mapping[str, Any]
Done = Mapping[Condition, Mapping[int, Log]]  # the log of each seed of each condition


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


class Comparison(NamedTuple):
    """The value by which kinds are compared, paired over the seeds."""

    label: str  # the value in words
    value: Callable[[Log], float]  # reads it from a log
    unit: str  # unit of the differences. With `%`, differences are relative
    hypotheses: Sequence[Hypothesis]  # the pairs of conditions that are compared
    digits: int = 1  # decimals of the differences

    def questions(self, setting: Setting, conditions: Done) -> list[Question]:
        """Returns the claims about a setting, those that wait for a condition included.

        Two kinds are equal within a quarter of LayerNorm's effect. Without such an effect there is
        nothing that another kind could be equal in, so there is no claim on equality.
        """
        logs = {condition.name: each for condition, each in conditions.items()}
        labels = {condition.name: condition.label for condition in conditions}
        effect = self._differences(logs, "layernorm", "none")
        shown = (
            len(effect) > 1 and all(map(math.isfinite, effect)) and t_interval(effect).excludes(0)
        )
        equality = {"margin": abs(mean(effect)) / 4, "note": _NOTE} if shown else {}
        return [
            Question(
                **vars(asked) | (equality if asked.outcome == "equal" else {}),
                pair=f"{labels.get(asked.one, asked.one)} minus "
                f"{labels.get(asked.other, asked.other)}, {setting.label}",
                differences=self._differences(logs, asked.one, asked.other),
                unit=f"{self.unit} in {self.label}, {setting.label}",
                digits=self.digits,
            )
            for asked in self.hypotheses
            if asked.setting in ("", setting.name) and (shown or asked.outcome != "equal")
        ]

    def _differences(
        self, logs: Mapping[str, Mapping[int, Log]], one: str, other: str
    ) -> list[float]:
        return paired(logs.get(one, {}), logs.get(other, {}), self.value, relative=self.unit == "%")


class Learning(NamedTuple):
    title: str  # title of the section
    text: str  # its paragraph
    columns: Sequence[Column]  # the values of the table
    curves: Sequence[Curve]  # the curves of the picture, one below the other
    comparisons: Sequence[Comparison]  # what is compared, and what the papers say of it
    # the published value of each condition by its name
    published: Mapping[str, str] = MappingProxyType({})


def learning_section(logs: Logs, learning: Learning) -> Section | None:
    """Returns the section, or `None` if no reported seed is done."""
    every = {setting: logs_by_condition(logs, setting) for setting in settings_of(logs)}
    done = {setting: conditions for setting, conditions in every.items() if conditions}
    if not done:
        return None
    cells = []
    data: dict[str, dict[str, Any]] = {}
    for setting, conditions in done.items():
        data[setting.name] = {}
        for condition, found in conditions.items():
            values = _values(learning, condition, found)
            step_size = next(iter(found.values()))["options"]["step_size"]
            head = [f"{condition.label}, {setting.label}", str(len(found)), f"{step_size:.2g}"]
            cells.append([*head, *values])
            of_seeds = {}
            for seed, log in found.items():
                of_seeds[str(seed)] = {each.label: each.value(log) for each in learning.columns}
            data[setting.name][condition.name] = of_seeds
    return Section(
        name="learning",
        title=learning.title,
        text=[learning.text],
        columns=["", "seeds", "learning rate", *(column.label for column in learning.columns)]
        + (["published"] if learning.published else []),
        rows=cells,
        data=data,
        plot=lambda figure: _plot(figure, done, learning.curves),
    )


def faster(paper: str) -> list[Hypothesis]:
    """Returns what most tasks compare: both norms with none, and with each other.

    A paper has LayerNorm's comparison with none.
    """
    return [
        Hypothesis("layernorm", "none", "lower", f"LayerNorm {FASTER}", paper),
        Hypothesis("rmsnorm", "none", "lower", f"RMSNorm {FASTER}", NOT_IN_PAPERS),
        Hypothesis(
            "rmsnorm", "layernorm", "equal", "RMSNorm learns as fast as LayerNorm", NOT_IN_PAPERS
        ),
    ]


def claims_section(logs: Logs, comparisons: Sequence[Comparison]) -> Section | None:
    """Returns the section of the claims on learning.

    `None` if there is none on conditions that are done.
    """
    asked = []
    for comparison, setting in itertools.product(comparisons, settings_of(logs)):
        asked += comparison.questions(setting, logs_by_condition(logs, setting))
    return differences_section(judge(asked), f"{RULE} {_MARGIN}")


def best(key: str, metric: str) -> Callable[[Log], float]:
    """Returns the reader of a value at the validation with the lowest metric."""
    return lambda log: min(log["validations"], key=lambda each: or_infinite(each[metric]))[key]


def last(key: str) -> Callable[[Log], float]:
    """Returns the reader of a value of the last validation."""
    return lambda log: log["validations"][-1][key]


def mean_of(key: str) -> Callable[[Log], float]:
    """Returns the reader of the mean over all validations, which tells how fast it changes."""
    return lambda log: mean(each[key] for each in log["validations"])


def mean_loss(log: Log) -> float:
    """Returns the mean training loss over all updates, which tells how fast the loss falls."""
    return mean(each["loss"] for each in log["train"])


def last_loss(log: Log) -> float:
    """Returns the mean training loss of the last tenth of the updates."""
    losses = [each["loss"] for each in log["train"]]
    return mean(losses[-max(1, len(losses) // 10) :])


def _values(learning: Learning, condition: Condition, found: Mapping[int, Log]) -> list[str]:
    values = []
    for column in learning.columns:
        told = spread(list(map(column.value, found.values())), column.digits)
        values.append(f"{told} {column.unit}" if column.unit and "diverged" not in told else told)
    return [*values, learning.published.get(condition.name, "")] if learning.published else values


def _plot(figure: Figure, done: Mapping[Setting, Done], curves: Sequence[Curve]) -> None:
    figure.set(
        size_inches=(4.75 * max(2, len(done)), 3.8 * len(curves)), layout_engine="constrained"
    )
    all_axes = figure.subplots(len(curves), len(done), squeeze=False, sharex="col")
    for column, (setting, conditions) in zip(all_axes.T, done.items(), strict=True):
        for axes, curve in zip(column, curves, strict=True):
            for condition, style in styles(
                {condition: (condition.name, condition.paper) for condition in conditions}
            ).items():
                _draw(axes, curve, condition, list(conditions[condition].values()), style)
            axes.set(yscale=curve.scale, ylabel=curve.label)
            axes.set_ylim(_range_after_the_beginning(axes))
            if curve.scale == "log":
                low, high = axes.get_ylim()
                axes.yaxis.set_major_locator(
                    LogLocator(subs=(1, 2, 5) if high > 5 * low else range(1, 10))
                )
                axes.yaxis.set_major_formatter("{x:g}")
                axes.yaxis.set_minor_formatter("{x:g}" if high < 2 * low else "")
        column[0].set_title(setting.label)
        column[-1].set_xlabel("updates")
    figure.legend(
        *all_axes[0, 0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=4,
        frameon=False,
    )


def _range_after_the_beginning(axes) -> tuple[float, float]:
    """Returns the range of the drawn lines without the first tenth of the updates.

    They fall most there.
    """
    x, y = np.concatenate([line.get_data() for line in axes.lines], axis=1)
    y = y[(x > x.max() / 10) & np.isfinite(y)]
    if not y.size:
        return axes.get_ylim()
    room = 0.05 * (y.max() - y.min()) or 0.05
    return y.min() - (0 if axes.get_yscale() == "log" else room), y.max() + room


def _draw(axes, curve: Curve, condition: Condition, logs: Sequence[Log], style) -> None:
    """Draws the mean of a curve over the seeds, and their range."""
    value = operator.itemgetter("update", curve.key)
    found = [dict(map(value, log[curve.part])) for log in logs]
    x = sorted(set.intersection(*map(set, found)))
    values = [list(map(operator.itemgetter(update), found)) for update in x]
    draw_seeds(axes, x, values, style, label=condition.label, markevery=max(1, len(x) // 10))
