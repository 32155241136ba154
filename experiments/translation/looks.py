"""How the rows of the translation experiments are drawn."""

from collections.abc import Iterable

from ..reporting.styles import Style, styles
from .published import TABLE2
from .row import Row


def styles_of(rows: Iterable[Row]) -> dict[Row, Style]:
    """Returns the style of each row: that of its kind for the paper's rows, another one for added rows."""
    rows = list(rows)
    found = styles({row.name: row.kind if row.name in TABLE2 else None for row in rows})
    return {row: found[row.name] for row in rows}
