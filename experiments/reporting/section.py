"""A section of a report: claims of a paper, a table, a plot and paragraphs."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any, NamedTuple

from matplotlib.figure import Figure


class Claim(NamedTuple):
    """A claim of a paper beside our evidence: one row of the table that begins a report."""

    claim: str
    paper: str
    ours: str
    verdict: str


@dataclass(frozen=True)
class Section:
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


Grid = Mapping[
    str, Mapping[str, Mapping[float, float]]
]  # the best value by setting, row and learning rate
Shares = Mapping[str, Mapping[str, float]]  # of each norm, by when it was measured


def step_size_section(grid: Grid, label: str, digits: int, data: Any) -> Section | None:
    """Returns the section, or `None` for an empty grid.

    Args:
        grid: The values, by the labels of settings and rows. With a single setting, its label may
            be empty.
        label: The values in words.
        digits: Digits after the point in the table.
        data: The values, for the JSON file.
    """
    if not grid:
        return None
    cells: dict[tuple[str, str], Mapping[float, float]] = {}
    for setting, rows in grid.items():
        cells |= {(row, setting): found for row, found in rows.items()}
    sizes = sorted(set().union(*cells.values()))
    return Section(
        name="step_sizes",
        title="Learning rates",
        text=[
            f"Best {label} by the learning rate of Adam, with a seed that is not reported "
            "elsewhere. The reported seeds of a row have its best learning rate."
        ],
        columns=["", *(f"{size:.2g}" for size in sizes)],
        rows=[
            [", ".join(filter(None, names)), *_cells(found, sizes, digits)]
            for names, found in cells.items()
        ],
        data=data,
    )


def _cells(found: Mapping[float, float], sizes: Sequence[float], digits: int) -> list[str]:
    return [f"{found[size]:.{digits}f}" if size in found else "" for size in sizes]


def mean_share_section(
    rows: Mapping[str, Sequence[Shares]], over: str, text: str
) -> Section | None:
    """Returns the section, or `None` without any rows.

    Args:
        rows: The shares of each seed, by the label of a row; in order of time.
        over: What the mean runs over, in words.
        text: Where it was measured, in sentences.
    """
    if not rows:
        return None
    times = list(dict.fromkeys(itertools.chain(*(seeds[0] for seeds in rows.values()))))
    return Section(
        name="mean_share",
        title="How much of a norm's input is its mean",
        text=[
            f"E[mean(a)²] / E[mean(a²)] of the input a of each norm, with the means over {over}: "
            "the part of the mean square that LayerNorm's centring removes and RMSNorm keeps. "
            f"{text} The table has the mean over the norms and the seeds, and the range of the "
            "norms at the end, each the mean of the seeds."
        ],
        columns=["", "seeds", *times, "norms, at the end"],
        rows=[[label, str(len(seeds)), *_shares(seeds, times)] for label, seeds in rows.items()],
        data=rows,
    )


def _shares(seeds: Sequence[Shares], times: Sequence[str]) -> list[str]:
    means = []
    for when in times:
        found = [shares[when].values() for shares in seeds if when in shares]
        means.append(f"{mean(map(mean, found)):.1%}" if len(found) == len(seeds) else "")
    last = [list(shares.values())[-1] for shares in seeds]
    norms = list(map(mean, zip(*(each.values() for each in last), strict=True)))
    return [*means, f"{min(norms):.1%} to {max(norms):.1%}"]
