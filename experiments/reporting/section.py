"""A section of a report: claims of a paper, a table, a plot and paragraphs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from matplotlib.figure import Figure


class Claim(NamedTuple):
    """A claim of a paper beside our evidence, as text: one row of the table that begins a report."""

    claim: str
    paper: str
    ours: str
    verdict: str


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
        plot: Draws on an empty figure; `None` for a section without a picture.
        claims: The claims of the paper that the section judges.
    """

    name: str
    title: str
    text: list[str]
    columns: list[str]
    rows: list[list[str]]
    data: Any
    plot: Callable[[Figure], None] | None = None
    claims: Sequence[Claim] = ()
