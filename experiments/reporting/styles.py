"""Plot styles of the kinds: a colour-blind safe palette (Okabe and Ito), markers, dashes."""

import itertools
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, NamedTuple, TypeVar

from matplotlib.axes import Axes

T = TypeVar("T")


class Style(NamedTuple):
    """The plot style of a condition in all pictures of a report."""

    color: str
    marker: str
    dashes: str


KINDS = {
    "none": Style("#7F7F7F", "o", ":"),
    "layernorm": Style("#0072B2", "s", "--"),
    "rmsnorm": Style("#D55E00", "^", "-"),
    "prmsnorm": Style("#009E73", "D", "-."),
    "l2norm": Style("#CC79A7", "v", (0, (5, 1, 1, 1, 1, 1))),
    "batchnorm": Style("#E69F00", "P", (0, (3, 1, 1, 1))),
    "weightnorm": Style("#56B4E9", "X", (0, (1, 1))),
}
OTHERS = ("#000000", "#882255", "#66418A")  # colours of conditions of no known kind
_MARKERS = "<>*phd8H1234+x"  # none of those of the kinds
_DASHES = [
    (0, each)
    for each in ((6, 1), (2, 2), (7, 2, 2, 2), (1, 3), (9, 4), (4, 1, 1, 1, 1, 1, 1, 1), (3, 4))
]


def styles(conditions: Mapping[T, tuple[str, bool]]) -> dict[T, Style]:
    """Returns the style of each condition, with a marker of its own.

    Args:
        conditions: The kind of each condition, and whether it is the paper's and has the style of
            its kind. Others of a known kind have its colour.
    """
    colors, markers, dashes = map(itertools.cycle, (OTHERS, _MARKERS, _DASHES))
    found = {}
    for condition, (kind, of_paper) in conditions.items():
        if of_paper:
            found[condition] = KINDS[kind]
        else:
            color = KINDS[kind].color if kind in KINDS else next(colors)
            found[condition] = Style(color, next(markers), next(dashes))
    return found


def draw_seeds(
    axes: Axes, x: Sequence[float], values: Sequence[Sequence[float]], style: Style, **line: Any
) -> None:
    """Draws the mean of a curve over the seeds, and their range.

    `values` has those of all seeds at each x.
    """
    axes.plot(
        x,
        list(map(mean, values)),
        color=style.color,
        marker=style.marker,
        linestyle=style.dashes,
        markersize=4,
        **line,
    )
    low = list(map(min, values))
    high = list(map(max, values))
    axes.fill_between(x, low, high, color=style.color, alpha=0.18, linewidth=0)
