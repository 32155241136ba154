"""Plot styles of the rows of the translation experiments, and of published values."""

from collections.abc import Iterable

from ..reporting.styles import Style, styles
from .published import TABLE2
from .row import Row

PUBLISHED = {"marker": "D", "markerfacecolor": "white", "markeredgecolor": "black", "linestyle": "none"}


def styles_of(rows: Iterable[Row]) -> dict[Row, Style]:
    """Returns the style of each row. The paper's rows have the style of their kind, added rows have others."""
    rows = list(rows)
    found = styles({row.name: row.kind if row.name in TABLE2 else None for row in rows})
    return {row: found[row.name] for row in rows}
