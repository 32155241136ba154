"""What there is to train: every row of `rows/`, with every seed."""

import importlib
import pkgutil
from collections.abc import Iterator

from nmt.errors import UserError

from . import rows
from .row import Row, Run


def read_rows() -> list[Row]:
    """Returns the rows of every file in `rows/`, those of `kinds.py` first.

    Raises:
        UserError: Two have the same name, or one would take the place of a kind that others have.
    """
    files = sorted((module.name for module in pkgutil.iter_modules(rows.__path__)), key=lambda name: name != "kinds")
    found = [row for name in files for row in importlib.import_module(f"{rows.__name__}.{name}").ROWS]
    names = [row.name for row in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UserError(f"more than one row is named {', '.join(sorted(twice))}; give each a name of its own")
    if taken := {row.name for row in found if row.build} & {row.kind for row in found}:
        raise UserError(f"{', '.join(sorted(taken))} is a kind that other rows have; give the new one another name")
    return found


def all_runs(found: list[Row], most_seeds: int) -> Iterator[Run]:
    """Yields every run: all rows with the first seed, then those that have more, up to so many."""
    for seed in range(1, most_seeds + 1):
        yield from (Run(row, seed) for row in found if row.seeds >= seed)
