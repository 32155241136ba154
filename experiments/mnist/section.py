"""The sections of the MNIST report."""

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from matplotlib.figure import Figure

from ..reporting.intervals import signed, spread, t_interval
from ..reporting.section import Section
from ..reporting.styles import band
from ..trials.sections import (
    Logs,
    logs_by_row,
    settings_of,
    share_section,
    speed_section,
    step_size_section,
    trial_styles,
)
from ..trials.trial import Setting, TrialRow

MARGIN = 1.0  # percent of LayerNorm's loss; RMSNorm counts as equal if the 90% interval lies within
_PAIRS = (("layernorm", "none"), ("rmsnorm", "none"), ("batchnorm", "none"), ("rmsnorm", "layernorm"))

_COLUMNS = ["", "seeds", "step size", "mean training loss", "last training loss", "best validation loss"]
_COLUMNS += ["test error, best", "test error, last"]

Done = dict[int, Mapping[str, Any]]  # the log of each seed


def sections(logs: Logs, times: Mapping[str, Any] | None) -> list[Section]:
    """Returns the sections for which there are results."""
    rows = list(dict.fromkeys(trial.row for trial in logs))
    found = [
        _learning(logs),
        step_size_section(logs, "nll", "validation loss in nats"),
        share_section(logs),
        speed_section(times, rows, settings_of(logs)),
    ]
    return [section for section in found if section]


def _learning(logs: Logs) -> Section | None:
    """Returns the section of training loss and test error, or `None` if no reported seed is done."""
    done = {setting: rows for setting in settings_of(logs) if (rows := logs_by_row(logs, setting))}
    if not done:
        return None
    return Section(
        name="learning",
        title="Loss and error (Ba et al. 2016, Figure 6)",
        text=[
            "A network of 784, 1,000, 1,000 and 10 units with ReLU, trained by Adam on 55,000 images; 5,000 validate. "
            "The norm stands before each ReLU; BatchNorm normalizes the logits too, as in the paper, with the unbiased "
            "variance. The training loss is the mean negative log-likelihood of the batches of a window of updates, in "
            "nats. Its mean over the whole training tells how fast it falls. The test error is that of the checkpoint "
            "with the best validation loss. Values are means over the seeds, with the standard deviation (sd). The "
            "paper shows curves and prints no numbers.",
            *(_judge(setting, rows) for setting, rows in done.items()),
        ],
        columns=_COLUMNS,
        rows=[_cells(setting, row, found) for setting, rows in done.items() for row, found in rows.items()],
        data={
            setting.name: {
                row.name: {str(seed): _values(log) for seed, log in found.items()} for row, found in rows.items()
            }
            for setting, rows in done.items()
        },
        plot=lambda figure: _plot(figure, done),
    )


def _values(log: Mapping[str, Any]) -> dict[str, float]:
    """Returns the losses and errors of a training that the table shows."""
    losses = [each["loss"] for each in log["train"]]
    best = min(log["validations"], key=lambda each: each["nll"])
    return {
        "mean_loss": mean(losses),
        "last_loss": mean(losses[-max(1, len(losses) // 10) :]),
        "nll": best["nll"],
        "error": best["test_error"],
        "last_error": log["validations"][-1]["test_error"],
    }


def _cells(setting: Setting, row: TrialRow, done: Done) -> list[str]:
    found = [_values(log) for log in done.values()]
    step_size = next(iter(done.values()))["options"]["step_size"]
    numbers = [spread([each[name] for each in found], 4) for name in ("mean_loss", "last_loss", "nll")]
    errors = [spread([100 * each[name] for each in found], 2) for name in ("error", "last_error")]
    return [f"{row.label}, {setting.label}", str(len(found)), f"{step_size:.2g}", *numbers, *(f"{e} %" for e in errors)]


def _judge(setting: Setting, rows: Mapping[TrialRow, Done]) -> str:
    """Describes the differences between kinds in the mean training loss, paired over the seeds."""
    found = {row.name: {seed: _values(log)["mean_loss"] for seed, log in done.items()} for row, done in rows.items()}
    labels = {row.name: row.label for row in rows}
    told = []
    for one, other in _PAIRS:
        seeds = sorted(found.get(one, {}).keys() & found.get(other, {}).keys())
        if len(seeds) > 1:
            percent = [100 * (found[one][seed] / found[other][seed] - 1) for seed in seeds]
            told.append(f"{labels[one]} against {labels[other]} {_difference(one, other, percent)}")
    if not told:
        return f"With {setting.label} there are too few seeds to compare."
    return (
        f"With {setting.label}, the mean training loss differs as follows (95% interval over paired seeds): "
        f"{'; '.join(told)}."
    )


def _difference(one: str, other: str, percent: Sequence[float]) -> str:
    found = t_interval(percent)
    verdict = "no difference shown" if not found.excludes(0) else "lower" if found.high < 0 else "higher"
    if (one, other) == ("rmsnorm", "layernorm") and t_interval(percent, 0.9).within(MARGIN):
        verdict = f"equal, as the 90% interval lies between -{MARGIN:g}% and +{MARGIN:g}%"
    return f"{signed(found)}% ({verdict})"


def _plot(figure: Figure, done: Mapping[Setting, Mapping[TrialRow, Done]]) -> None:
    figure.set(size_inches=(9.5, 7.6), layout_engine="constrained")
    all_axes = figure.subplots(2, len(done), squeeze=False)
    for (losses, errors), (setting, rows) in zip(all_axes.T, done.items(), strict=True):
        for row, style in trial_styles(list(rows)).items():
            for axes, part, name, factor in ((losses, "train", "loss", 1), (errors, "validations", "test_error", 100)):
                curves = [{each["update"]: factor * each[name] for each in log[part]} for log in rows[row].values()]
                x = sorted(set.intersection(*map(set, curves)))
                values = [[curve[update] for curve in curves] for update in x]
                every = {"markevery": max(1, len(x) // 10)}
                axes.plot(x, list(map(mean, values)), label=row.label, **style.line(), **every)
                band(axes, x, list(map(min, values)), list(map(max, values)), style)
        losses.set(yscale="log", ylabel="training loss, nats", title=setting.label)
        errors.set(yscale="log", ylabel="test error, %", xlabel="updates")
    figure.legend(*all_axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
