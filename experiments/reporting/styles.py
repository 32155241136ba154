"""Plot styles of the kinds of normalization: a colour-blind safe palette (Okabe and Ito), markers and dashes."""

import itertools
from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any, NamedTuple

from matplotlib.axes import Axes


class Style(NamedTuple):
    """The plot style of a row in all pictures of a report."""

    color: str
    marker: str
    dashes: str

    def line(self) -> dict[str, Any]:
        """Returns the arguments of `Axes.plot` for a line with markers."""
        return {"color": self.color, "marker": self.marker, "linestyle": self.dashes, "markersize": 4}


KINDS = {
    "none": Style("#7F7F7F", "o", ":"),
    "layernorm": Style("#0072B2", "s", "--"),
    "rmsnorm": Style("#D55E00", "^", "-"),
    "prmsnorm": Style("#009E73", "D", "-."),
    "l2norm": Style("#CC79A7", "v", (0, (5, 1, 1, 1, 1, 1))),
    "batchnorm": Style("#E69F00", "P", (0, (3, 1, 1, 1))),
    "weightnorm": Style("#56B4E9", "X", (0, (1, 1))),
}
OTHERS = (Style("#000000", "<", "--"), Style("#882255", ">", "-."), Style("#66418A", "*", ":"))


def styles(kinds: Mapping[str, str | None]) -> dict[str, Style]:
    """Returns the style of each row.

    Args:
        kinds: The kind of each row by its name; `None` for a row that is not of the paper.
    """
    others = itertools.cycle(OTHERS)
    return {name: KINDS[kind] if kind in KINDS else next(others) for name, kind in kinds.items()}


def draw_seeds(axes: Axes, x: Sequence[float], values: Sequence[Sequence[float]], style: Style, **line: Any) -> None:
    """Draws the mean of a curve over the seeds, and their range; `values` has those of all seeds at each x."""
    axes.plot(x, list(map(mean, values)), **style.line(), **line)
    low, high = list(map(min, values)), list(map(max, values))
    axes.fill_between(x, low, high, color=style.color, alpha=0.18, linewidth=0)
