"""Plot styles of the rows of the translation experiments, and of published values."""

import itertools
from collections.abc import Iterable

from ..reporting.styles import KINDS, OTHERS, Style
from .published import FAILS, RESULTS
from .row import Row

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
