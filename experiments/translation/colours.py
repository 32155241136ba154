"""The colours of the plots, of the palette by Okabe and Ito, which the colour-blind can tell apart."""

import itertools
from collections.abc import Iterable

from .published import TABLE2
from .row import Row

# By kind of normalization.
COLOURS = {
    "none": "#7F7F7F",
    "layernorm": "#0072B2",
    "rmsnorm": "#D55E00",
    "prmsnorm": "#009E73",
    "l2norm": "#CC79A7",
}
OTHERS = ("#56B4E9", "#E69F00", "#000000")


def colours_of(rows: Iterable[Row]) -> dict[Row, str]:
    """Returns the colours of Table 2's rows: of the paper's that of their kind, of those that were added the others."""
    others = itertools.cycle(OTHERS)
    return {row: COLOURS[row.kind] if row.name in TABLE2 else next(others) for row in rows}
