"""The grid of learning rates of the translation experiments."""

from collections.abc import Sequence

from ...reporting.section import Section
from ...reporting.step_sizes import step_size_section
from ..results import Result, by_row
from ..row_styles import styles_of


def section(grid: Sequence[Result]) -> Section | None:
    """Returns the section of the trainings that choose a learning rate, or `None` without any."""
    rows = by_row(grid)
    found = {row.label: {each.log["options"]["learning_rate"]: each.dev for each in done} for row, done in rows.items()}
    styles = {row.label: style for row, style in styles_of(rows).items()}
    data = {row.name: found[row.label] for row in rows}
    return step_size_section({"": found} if found else {}, styles, "dev BLEU", 1, data)
