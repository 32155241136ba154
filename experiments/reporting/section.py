"""A section of a report: claims of a paper, a table, a plot and paragraphs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from matplotlib.figure import Figure


class Claim(NamedTuple):
    """A claim of a paper beside our evidence, as text: one row of the table that begins a
    report."""

    claim: str
    paper: str
    ours: str
    verdict: str


@dataclass(frozen=True)
class Section:
    """One section of a report."""

    name: str  # name of its picture files, and its key in the JSON file
    title: str  # heading, and title of the picture
    text: list[str]  # paragraphs, in Markdown without tables and lists
    columns: list[str]  # heads of the table
    rows: list[list[str]]  # cells of the table, as text
    data: Any  # the measured values, for the JSON file
    plot: Callable[[Figure], None] | None = (
        None  # draws on an empty figure; `None` for a section without a picture
    )
    claims: Sequence[Claim] = ()  # the claims of the paper that the section judges
