"""A section of the report: a table, a plot, and what there is to say."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure


@dataclass(frozen=True)
class Section:
    """One section, as `report` writes it in Markdown, HTML and JSON."""

    name: str  # of its plot's file, and its key in the JSON
    title: str
    text: list[str]  # paragraphs, in Markdown without tables and lists
    columns: list[str]
    rows: list[list[str]]  # the cells as they are shown
    data: Any  # the figures as they were measured, for JSON
    plot: Callable[[Figure], None]  # draws on an empty figure
