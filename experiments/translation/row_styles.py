"""Plot styles of the rows of the translation experiments, and of published values."""

import itertools
from collections.abc import Iterable

from ..reporting.styles import KINDS, OTHERS, Style
from .published import FAILS, RESULTS
from .row import Row

PUBLISHED = {"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black", "linestyle": "none"}


def styles_of(rows: Iterable[Row]) -> dict[Row, Style]:
    """Returns the style of each row.

    The paper's rows have the style of their kind, other rows of a known kind its colour, and rows that build a norm or
    have a program of their own neither.
    """
    others = itertools.cycle(OTHERS)
    return {row: KINDS[row.kind] if row.name in (*RESULTS, FAILS) else _added(row, next(others)) for row in rows}


def _added(row: Row, style: Style) -> Style:
    usual = row.kind in KINDS and row.program == "nmt"
    return style._replace(color=KINDS[row.kind].color) if usual else style
