"""Initialisation around another centre (Figure 4)."""

from collections.abc import Sequence
from itertools import groupby
from statistics import mean

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...reporting.intervals import spread, t_interval
from ...reporting.section import Claim, Section
from ...reporting.styles import KINDS
from ..published import CENTRED, LABELS, TABLE2
from ..results import Result, by_row
from ..row import Row
from .paired import RULE, differences, differs, equal, told
from .verdicts import not_shown, seeds

_MOVED = {"": "none", "embeddings": "embeddings", "matrices": "other matrices", "all": "all"}  # by `Row.moved`

Rows = dict[Row, list[Result]]


def section(results: Sequence[Result]) -> Section | None:
    """Returns the section that compares the rows with another centre to those of Table 2, or `None` without any."""
    rows = by_row(results)
    moved = {row: done for row, done in rows.items() if row.section == "centre"}
    if not moved:
        return None
    kinds = {row.kind for row in moved}
    usual = {row: done for row, done in rows.items() if row.name in TABLE2 and row.kind in kinds}
    shown, pairs = {**usual, **moved}, _pairs(moved)
    return Section(
        name="centre",
        title="Another centre of the initialisation (Figure 4)",
        text=[
            "Matrices are initialised as usual; then the centre is added to all entries of some of them: the "
            f"embeddings{_tied(results[0])}, the other matrices in front of a norm, or all, with the attention's last "
            "vector. All else is as in Table 2. RMSNorm minus LayerNorm is the difference in best dev BLEU, paired by "
            f"seed, with its 95% interval. A row and the one with the usual centre count as equal if {RULE}.",
            _on_paper(),
        ],
        columns=[
            "",
            "centre",
            "moved",
            "seeds",
            "best dev BLEU",
            "last dev BLEU",
            "skipped",
            "RMSNorm minus LayerNorm",
        ],
        rows=[[*_cells(row, done), *_against(row, pairs)] for row, done in shown.items()],
        data={row.name: {result.seed: result.dev for result in done} for row, done in shown.items()},
        plot=lambda figure: _plot(figure, usual, moved),
        claims=[*_on_order(moved), *_on_invariance(usual, moved)],
    )


def _tied(result: Result) -> str:
    tied = result.log["options"].get("tie_decoder_embeddings")
    return " (those of the target are the output table too)" if tied else ""


def _pairs(moved: Rows) -> dict[tuple[float, str], list[float]]:
    """Returns the BLEU of RMSNorm less that of LayerNorm by centre and by what is moved."""
    done = {(row.kind, row.centre, row.moved): found for row, found in moved.items()}
    return {
        (centre, part): gains
        for kind, centre, part in done
        if kind == "rmsnorm"
        and ("layernorm", centre, part) in done
        and (gains := differences(done[kind, centre, part], done["layernorm", centre, part]))
    }


def _against(row: Row, pairs: dict[tuple[float, str], list[float]]) -> list[str]:
    return [told(pairs.get((row.centre, row.moved), [])) if row.kind == "rmsnorm" and row.centre else ""]


def _on_order(moved: Rows) -> list[Claim]:
    """Judges the paper's claim by the rows whose matrices are all moved by the largest centre."""
    pairs = {centre: gains for (centre, part), gains in _pairs(moved).items() if part == "all"}
    if not pairs:
        return []
    centre, gains = max(pairs.items())
    means = {
        row.kind: mean(result.dev for result in done)
        for row, done in moved.items()
        if (row.centre, row.moved) == (centre, "all")
    }
    paper = {kind: max(found.values()) for kind, found in CENTRED.items()}
    return [
        Claim(
            "Figure 4: RMSNorm bears initial weights around 0.2 better than LayerNorm",
            f"best BLEU {paper['rmsnorm']} against {paper['layernorm']}",
            f"dev BLEU {means['rmsnorm']:.1f} against {means['layernorm']:.1f}, centre {centre:g}: {told(gains)}",
            _verdict(gains),
        )
    ]


def _verdict(gains: Sequence[float]) -> str:
    if len(gains) < 2:
        order = "the same order" if gains[0] > 0 else "the order is reversed"
        return f"{order}, {not_shown(1)}"
    _, low, high = t_interval(gains)
    return "borne out" if low > 0 else "not borne out: the order is reversed" if high < 0 else not_shown(len(gains))


def _on_invariance(usual: Rows, moved: Rows) -> list[Claim]:
    """Judges whether only RMSNorm suffers if matrices before a norm are moved and nothing else is."""
    ordinary = {row.kind: done for row, done in usual.items()}
    claims = []
    for row, done in moved.items():
        gains = differences(done, ordinary.get(row.kind, []))
        if row.moved == "matrices" and len(gains) > 1:
            is_layernorm = row.kind == "layernorm"
            claims.append(
                Claim(
                    f"Table 1, in training: {LABELS[row.kind]} is {'' if is_layernorm else 'not '}invariant to a shift "
                    "of the matrices before it",
                    "yes",
                    f"{told(gains)} dev BLEU with centre {row.centre:g}, {seeds(len(gains))}",
                    _on_shift(gains, is_layernorm),
                )
            )
    return claims


def _on_shift(gains: Sequence[float], expects_equal: bool) -> str:
    if equal(gains):
        return "borne out" if expects_equal else "not borne out: it trains as ever"
    if differs(gains):
        return "not borne out" if expects_equal else "borne out"
    return not_shown(len(gains))


def _on_paper() -> str:
    best = {kind: max(found.values()) for kind, found in CENTRED.items()}
    published = " and ".join(f"{best[kind]} with {LABELS[kind]}" for kind in CENTRED)
    return (
        "The paper says only that the initial weights are centred at 0.2, not which; we compare it with the rows that "
        f"move all. In its Figure 4 (read from the authors' vector drawing) the best BLEU is {published}."
    )


def _cells(row: Row, done: Sequence[Result]) -> list[str]:
    last = [result.log["validations"][-1]["bleu"] for result in done]
    part = _MOVED[row.moved if row.centre else ""]
    scores = [spread([result.dev for result in done]), spread(last)]
    return [row.label, f"{row.centre:g}", part, str(len(done)), *scores, str(sum(r.log["skipped"] for r in done))]


def _plot(figure: Figure, usual: Rows, moved: Rows) -> None:
    """Draws the best dev BLEU by what is moved, a panel for each centre, and the published curves."""
    centres = [centre for centre, _ in groupby(sorted(row.centre for row in moved))]
    figure.set(size_inches=(3.4 * (len(centres) + 1), 4.4), layout_engine="constrained")
    *panels, published = figure.subplots(1, len(centres) + 1)
    for axes in panels[1:]:
        axes.sharey(panels[0])
    for axes, centre in zip(panels, centres, strict=True):
        _draw(axes, {**usual, **{row: done for row, done in moved.items() if row.centre == centre}})
        axes.set(xlabel="moved", ylabel="best dev BLEU", title=f"ours, centre {centre:g}")
    for kind, found in CENTRED.items():
        published.plot(list(found), list(found.values()), **KINDS[kind]._replace(dashes="--").line())
    published.set(xlabel="validations, 30,000 updates each", ylabel="BLEU", title="published, centre 0.2 (WMT14)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)


def _draw(axes: Axes, rows: Rows) -> None:
    places = list(_MOVED)
    for number, kind in enumerate(dict.fromkeys(row.kind for row in rows)):
        found = {row.moved if row.centre else "": done for row, done in rows.items() if row.kind == kind}
        x = [places.index(part) + 0.12 * (2 * number - 1) for part in found]
        scores = [[result.dev for result in done] for done in found.values()]
        style = KINDS[kind]
        axes.plot(
            x, list(map(mean, scores)), style.marker, color=style.color, label=f"{LABELS[kind]}, mean of the seeds"
        )
        for at, values in zip(x, scores, strict=True):
            axes.plot([at] * len(values), values, "_", color=style.color)
    axes.set_xticks(range(len(places)), [name.replace(" ", "\n") for name in _MOVED.values()])
