"""A section of a report: a table, a plot and paragraphs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Section:
    """One section of a report.

    Args:
        name: Name of its picture files, and its key in the JSON file.
        title: Heading, and title of the picture.
        text: Paragraphs, in Markdown without tables and lists.
        columns: Heads of the table.
        rows: Cells of the table, as text.
        data: The measured values, for the JSON file.
        plot: Draws on an empty figure.
    """

    name: str
    title: str
    text: list[str]
    columns: list[str]
    rows: list[list[str]]
    data: Any
    plot: Callable[[Figure], None]
