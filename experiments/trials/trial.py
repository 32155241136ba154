"""A row is one kind of normalization in a task; a trial is one training of a row."""

import importlib
import itertools
import math
import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

from nmt.errors import UserError

if TYPE_CHECKING:
    import keras

GRID_SEED = (
    0  # seed of the trials that choose the learning rate; only their own section reports them
)
SEEDS = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class TrialRow:
    """One row of a task's tables, trained once for each seed."""

    name: str  # name of its trials and their logs
    label: str  # its name in the report
    norm: "Callable[[str], keras.layers.Layer] | None"  # builds the normalization from a layer name; `None` for none
    paper: bool = False  # whether the row is one of the paper's; its name is then a key of `reporting.styles.KINDS`
    options: Mapping[str, Any] = field(
        default_factory=dict, hash=False
    )  # model options that only this row has


@dataclass(frozen=True)
class Setting:
    """A way to train all rows of a task: batch size and number of updates."""

    name: str  # part of the names of its trials
    label: str  # its name in the report
    batch_size: int  # examples in a batch
    updates: int  # updates of a training
    window: int  # updates over which a training loss is averaged
    validate_every: int  # updates between two validations, a multiple of `window`
    options: Mapping[str, Any] = field(
        default_factory=dict, hash=False
    )  # what else only this setting has


@dataclass(frozen=True)
class Trial:
    """One training."""

    row: TrialRow
    setting: Setting
    seed: int
    step_size: float

    @property
    def name(self) -> str:
        """Name of its log."""
        last = f"step-{self.step_size:.2g}" if self.seed == GRID_SEED else str(self.seed)
        return f"{self.row.name}-{self.setting.name}-{last}"

    @property
    def options(self) -> dict[str, Any]:
        """Values that a log must share with this trial to be its log."""
        sizes = {
            name: getattr(self.setting, name)
            for name in ("batch_size", "updates", "window", "validate_every")
        }
        row = {"row": self.row.name, **self.row.options}
        return {
            **row,
            **sizes,
            **self.setting.options,
            "seed": self.seed,
            "step_size": self.step_size,
        }

    def options_of(self, log: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns these values of a log."""
        return log["options"]


def rows_of(package: ModuleType) -> list:
    """Returns the `ROWS` of a package and of every module in it.

    Raises:
        UserError: Two rows have the same name.
    """
    files = sorted(module.name for module in pkgutil.iter_modules(package.__path__))
    modules = [package, *(importlib.import_module(f"{package.__name__}.{name}") for name in files)]
    found = list(itertools.chain(*(module.ROWS for module in modules)))
    names = [row.name for row in found]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise UserError(
            f"more than one row is named {', '.join(sorted(twice))}; give each a name of its own"
        )
    return found


def grid_trials(
    rows: Iterable[TrialRow], settings: Iterable[Setting], step_sizes: Sequence[float]
) -> list[Trial]:
    """Returns the trials of every row and setting with every learning rate of the grid."""
    which = itertools.product(settings, step_sizes, rows)
    return [Trial(row, setting, GRID_SEED, each) for setting, each, row in which]


def best_step_sizes(
    logs: Mapping[Trial, Mapping[str, Any]], metric: str, step_sizes: Sequence[float]
) -> dict[tuple[TrialRow, Setting], float]:
    """Returns the rate with the best validation for each row and setting whose trials with all rates are done."""
    found: dict[tuple[TrialRow, Setting], dict[float, float]] = {}
    for trial, log in logs.items():
        if trial.seed == GRID_SEED:
            found.setdefault((trial.row, trial.setting), {})[trial.step_size] = lowest(log, metric)
    return {
        key: min(each, key=each.get) for key, each in found.items() if len(each) == len(step_sizes)
    }


def lowest(log: Mapping[str, Any], metric: str) -> float:
    """Returns the lowest value of a metric in the validations of a log."""
    return min(or_infinite(each[metric]) for each in log["validations"])


def or_infinite(value: float) -> float:
    """Returns the value of a metric, or infinity if it is not a number, which is then never the lowest."""
    return math.inf if math.isnan(value) else value


def seed_trials(
    step_sizes: Mapping[tuple[TrialRow, Setting], float], seeds: Sequence[int] = SEEDS
) -> list[Trial]:
    """Returns the reported trials, ordered by seed."""
    which = itertools.product(seeds, step_sizes.items())
    return [Trial(*key, seed, step_size) for seed, (key, step_size) in which]
