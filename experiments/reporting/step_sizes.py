"""The section of a grid of learning rates, from which each row takes its best."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from .section import Section
from .styles import Style

Grid = Mapping[str, Mapping[str, Mapping[float, float]]]  # the best value by setting, row and learning rate


def step_size_section(grid: Grid, styles: Mapping[str, Style], label: str, digits: int, data: Any) -> Section | None:
    """Returns the section, or `None` for an empty grid.

    Args:
        grid: The values, by the labels of settings and rows. With a single setting, its label may be empty.
        styles: The style of each row by its label.
        label: The values in words.
        digits: Digits after the point in the table.
        data: The values, for the JSON file.
    """
    if not grid:
        return None
    sizes = sorted({size for rows in grid.values() for found in rows.values() for size in found})
    return Section(
        name="step_sizes",
        title="Learning rates",
        text=[
            f"Best {label} by the learning rate of Adam, with a seed that is not reported elsewhere. The reported "
            "seeds of a row have its best learning rate."
        ],
        columns=["", *(f"{size:.2g}" for size in sizes)],
        rows=[
            [", ".join(filter(None, (row, setting))), *(_cell(found.get(size), digits) for size in sizes)]
            for setting, rows in grid.items()
            for row, found in rows.items()
        ],
        data=data,
        plot=lambda figure: _plot(figure, grid, styles, sizes, label),
    )


def _cell(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _plot(figure: Figure, grid: Grid, styles: Mapping[str, Style], sizes: list[float], label: str) -> None:
    figure.set(size_inches=(max(9.5, 4.75 * len(grid)), 4.2), layout_engine="constrained")
    for axes, (setting, rows) in zip(figure.subplots(1, len(grid), squeeze=False)[0], grid.items(), strict=True):
        for row, found in rows.items():
            known = [size for size in sizes if size in found]
            axes.plot(known, [found[size] for size in known], label=row, **styles[row].line())
        axes.set(xscale="log", xlabel="learning rate of Adam", ylabel=f"best {label}", title=setting)
        axes.set_xticks(sizes, [f"{size:.2g}" for size in sizes])
        axes.minorticks_off()
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
