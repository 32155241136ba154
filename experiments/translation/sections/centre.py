"""Initialisation around another centre (Figure 4)."""

from collections.abc import Sequence
from statistics import mean

from matplotlib.figure import Figure

from ...reporting.intervals import signed, spread, t_interval
from ...reporting.judging import paired
from ...reporting.section import Section
from ...reporting.styles import KINDS
from ..condition import Condition
from ..published import CENTRED, LABELS, TABLE2
from ..results import Result, by_condition

_MOVED = {
    "": "none",
    "embeddings": "embeddings",
    "matrices": "other matrices",
    "all": "all",
}  # by `Condition.moved`

Rows = dict[Condition, list[Result]]


def section(results: Sequence[Result]) -> Section | None:
    """Compares the conditions with another centre to those of Table 2; `None` without any."""
    conditions = by_condition(results)
    moved = {
        condition: done for condition, done in conditions.items() if condition.section == "centre"
    }
    if not moved:
        return None
    kinds = {condition.kind for condition in moved}
    usual = {
        condition: done
        for condition, done in conditions.items()
        if condition.name in TABLE2 and condition.kind in kinds
    }
    by_kind = {condition.kind: done for condition, done in usual.items()}
    shown = {**usual, **moved}
    other = {
        condition.moved: done for condition, done in moved.items() if condition.kind == "layernorm"
    }
    published = " and ".join(f"{best:.1f} with {LABELS[kind]}" for kind, best in CENTRED.items())
    return Section(
        name="centre",
        title="Another centre of the initialisation (Figure 4)",
        text=[
            "Matrices are initialised as usual; then 0.2 is added to all entries of some of them: the embeddings, the "
            "other matrices in front of a norm, or all, with the attention's last vector. All else is as in Table 2. "
            "Differences are of best dev BLEU, paired by seed, with their 95% interval. What is "
            "judged is in the claims.",
            "The paper says only that the initial weights are centred at 0.2, not which; we compare it with the rows "
            f"that move all. In the 30 validations of its Figure 4 (read from the authors' "
            f"vector drawing) the best BLEU is {published}.",
        ],
        columns=[
            "",
            "moved",
            "seeds",
            "best dev BLEU",
            "minus the usual centre",
            "RMSNorm minus LayerNorm",
        ],
        rows=[
            _cells(condition, done, by_kind.get(condition.kind, []), other.get(condition.moved, []))
            for condition, done in shown.items()
        ],
        data={condition.name: _by_seed(done) for condition, done in shown.items()},
        plot=lambda figure: _plot(figure, shown),
    )


def _cells(
    condition: Condition,
    done: Sequence[Result],
    usual: Sequence[Result],
    layernorm: Sequence[Result],
) -> list[str]:
    moved = _MOVED[condition.moved if condition.centre else ""]
    cells = [condition.label, moved, str(len(done)), spread(list(_by_seed(done).values()))]
    to_usual = _told(done, usual) if condition.centre else ""
    to_layernorm = (
        _told(done, layernorm) if condition.centre and condition.kind == "rmsnorm" else ""
    )
    return [*cells, to_usual, to_layernorm]


def _by_seed(done: Sequence[Result]) -> dict[int, float]:
    return {result.seed: result.dev for result in done}


def _told(one: Sequence[Result], other: Sequence[Result]) -> str:
    """Returns the mean difference with its 95% interval as text, for the seeds that both have."""
    gains = paired(_by_seed(one), _by_seed(other), float)
    if len(gains) < 2:
        return f"{gains[0]:+.1f} (1 seed)" if gains else ""
    return signed(t_interval(gains))


def _plot(figure: Figure, conditions: Rows) -> None:
    """Draws the best dev BLEU by what is moved."""
    figure.set(size_inches=(9.5, 4.4), layout_engine="constrained")
    axes = figure.subplots()
    places = list(_MOVED)
    for number, kind in enumerate(dict.fromkeys(condition.kind for condition in conditions)):
        scores = {}
        for condition, done in conditions.items():
            if condition.kind == kind:
                place = places.index(condition.moved if condition.centre else "")
                scores[place + 0.12 * (2 * number - 1)] = list(_by_seed(done).values())
        style = KINDS[kind]
        label = f"{LABELS[kind]}, mean of the seeds"
        axes.plot(
            list(scores),
            list(map(mean, scores.values())),
            style.marker,
            color=style.color,
            label=label,
        )
        for at, values in scores.items():
            axes.plot([at] * len(values), values, "_", color=style.color)
    axes.set_xticks(range(len(places)), [name.replace(" ", "\n") for name in _MOVED.values()])
    axes.set(xlabel="moved", ylabel="best dev BLEU")
    axes.plot([], [], "_", color="black", label="each seed")
    figure.legend(
        *axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
    )
