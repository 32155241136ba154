"""A condition is one kind of normalization in a task; a run is one training of a condition."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import keras

GRID_SEED = 0  # seed of the runs that choose the learning rate; only their own section reports them
SEEDS = (1, 2, 3, 4, 5)


@dataclass(frozen=True)
class Condition:
    """One condition of a task's tables, trained once for each seed."""

    name: str  # name of its runs and their logs
    label: str  # its name in the report
    # Builds the normalization from a layer name; `None` for none.
    norm: "Callable[[str], keras.layers.Layer] | None"
    paper: bool = False  # whether it is the paper's, and its name a key of `styles.KINDS`
    # model options that only this condition has
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Setting:
    """A way to train all conditions of a task: batch size and number of updates."""

    name: str  # part of the names of its runs
    label: str  # its name in the report
    batch_size: int  # examples in a batch
    updates: int  # updates of a training
    window: int  # updates over which a training loss is averaged
    validate_every: int  # updates between two validations, a multiple of `window`
    # what else only this setting has
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Run:
    condition: Condition
    setting: Setting
    seed: int
    step_size: float

    @property
    def name(self) -> str:
        last = f"step-{self.step_size:.2g}" if self.seed == GRID_SEED else str(self.seed)
        return f"{self.condition.name}-{self.setting.name}-{last}"

    @property
    def options(self) -> dict[str, Any]:
        """Values that a log must share with this run to be its log."""
        sizes = {
            name: getattr(self.setting, name)
            for name in ("batch_size", "updates", "window", "validate_every")
        }
        return {
            "row": self.condition.name,
            **self.condition.options,
            **sizes,
            **self.setting.options,
            "seed": self.seed,
            "step_size": self.step_size,
        }

    def options_of(self, log: Mapping[str, Any]) -> Mapping[str, Any]:
        return log["options"]


def grid_runs(
    conditions: Iterable[Condition], settings: Iterable[Setting], step_sizes: Sequence[float]
) -> list[Run]:
    """Returns the runs of every condition and setting with every learning rate of the grid."""
    return [
        Run(condition, setting, GRID_SEED, each)
        for setting, each, condition in itertools.product(settings, step_sizes, conditions)
    ]


def best_step_sizes(
    logs: Mapping[Run, Mapping[str, Any]], metric: str, step_sizes: Sequence[float]
) -> dict[tuple[Condition, Setting], float]:
    """Returns the rate with the best validation for each condition and setting.

    Runs with all rates must be done.
    """
    found: dict[tuple[Condition, Setting], dict[float, float]] = {}
    for run, log in logs.items():
        if run.seed == GRID_SEED:
            found.setdefault((run.condition, run.setting), {})[run.step_size] = lowest(log, metric)
    return {
        key: min(each, key=each.get) for key, each in found.items() if len(each) == len(step_sizes)
    }


def lowest(log: Mapping[str, Any], metric: str) -> float:
    """Returns the lowest value of a metric in the validations of a log."""
    return min(or_infinite(each[metric]) for each in log["validations"])


def or_infinite(value: float) -> float:
    """Returns a value, or infinity if it is not a number, which is then never the lowest."""
    return math.inf if math.isnan(value) else value


def seed_runs(
    step_sizes: Mapping[tuple[Condition, Setting], float], seeds: Sequence[int] = SEEDS
) -> list[Run]:
    """Returns the reported runs, ordered by seed."""
    return [
        Run(*key, seed, step_size)
        for seed, (key, step_size) in itertools.product(seeds, step_sizes.items())
    ]
