"""The sections that the reports of all tasks have, learning rates and the share of the mean, and the styles of rows."""

import itertools
from collections.abc import Iterable, Sequence

from ...reporting.mean_share import Shares, mean_share_section
from ...reporting.section import Section
from ...reporting.step_sizes import step_size_section
from ...reporting.styles import KINDS, OTHERS, Style
from ..published import FAILS, RESULTS
from ..results import Result, by_row
from ..row import Row

# Older logs have these of models without a norm too. Post-norm models have no norm there.
_ENDS = ("encoder.final_norm", "decoder.final_norm")

_MARKERS = "<>*phd8H1234+x"  # none of those of the kinds
_DASHES = [(0, each) for each in ((6, 1), (2, 2), (7, 2, 2, 2), (1, 3), (9, 4), (4, 1, 1, 1, 1, 1, 1, 1), (3, 4))]


def styles_of(rows: Iterable[Row]) -> dict[Row, Style]:
    """Returns the style of each row, with a marker of its own.

    The paper's rows have the style of their kind, and other rows of a known kind its colour. Other rows that build a
    norm have neither.
    """
    colors = itertools.cycle(style.color for style in OTHERS)
    markers, dashes = itertools.cycle(_MARKERS), itertools.cycle(_DASHES)
    found = {}
    for row in rows:
        kind = KINDS.get(row.name) or KINDS.get(row.kind)
        if row.name in (*RESULTS, FAILS, *KINDS):
            found[row] = kind
        else:
            found[row] = Style(kind.color if kind else next(colors), next(markers), next(dashes))
    return found


def step_sizes(grid: Sequence[Result]) -> Section | None:
    """Returns the section of the trainings that choose a learning rate, or `None` without any."""
    rows = by_row(grid)
    found = {row.label: {each.log["options"]["learning_rate"]: each.dev for each in done} for row, done in rows.items()}
    styles = {row.label: style for row, style in styles_of(rows).items()}
    data = {row.name: found[row.label] for row in rows}
    return step_size_section({"": found} if found else {}, styles, "dev BLEU", 1, data)


def mean_share(results: Sequence[Result]) -> Section | None:
    """Returns the section of the rows that were measured, or `None` without any."""
    rows = by_row(result for result in results if "mean_share" in result.log)
    return mean_share_section(
        {row.label: list(map(_shares, done)) for row, done in rows.items()},
        {row.label: style for row, style in styles_of(rows).items()},
        "its units",
        "It is measured on sentences of the dev set, with the reference's words, after N updates. A row without a norm "
        "is measured where its norms would be.",
    )


def _shares(result: Result) -> Shares:
    left_out = _ENDS if result.log["options"].get("transformer_norm_position") == "post" else ()
    return {
        f"N = {int(update):,}": {path: share for path, share in paths.items() if path not in left_out}
        for update, paths in result.log["mean_share"].items()
    }
