"""A condition is one training, declared in a file of `conditions/`.

A run is a condition with a seed.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from ..runs.run import GRID_SEED

if TYPE_CHECKING:
    import keras


@dataclass(frozen=True)
class Condition:
    """One condition of a table or one point of a figure, trained once for each seed."""

    name: str  # name of its runs and their logs
    label: str  # its name in the report
    kind: str = ""  # value of `--layer_normalization_type`. Give this or `build`
    # maps a layer name to a Keras layer over the last axis, for a norm that the patched baseline
    # lacks. The kind is then the condition's name
    build: "Callable[[str], keras.layers.Layer] | None" = None
    seeds: int = 1  # how many seeds it is trained with
    first_seed: int = 1  # the first of them; the others follow
    # names of the only corpora that it is trained on. By default, all that have its architecture
    # and do not leave it out
    corpora: Sequence[str] = ()
    partial: float | None = (
        None  # the share of the entries that gives the statistic, for a point of Figure 3
    )
    centre: float = 0.0  # added to the matrices when they are initialised, for a curve of Figure 4
    # the matrices that it is added to: `all`, `embeddings`, or `matrices`, the others in front of a
    # norm
    moved: str = "all"
    # options of `nmt train` that differ from the corpus's
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    # name of the condition that it varies, whose learning rate it takes where the corpus has a grid
    # of step sizes. By default a condition chooses its own, unless its options have a
    # `learning_rate`
    step_size_of: str = ""
    model_type: str = "rnn"  # the architecture that it is trained with

    def __post_init__(self):
        if bool(self.kind) == bool(self.build):
            raise ValueError(
                f"condition {self.name!r} has {self.kind=} and {self.build=}; give one of the two"
            )

    @property
    def section(self) -> str:
        """The section of the report that shows it: `partial`, `centre`, or `main`."""
        if self.partial or self.centre:
            return "partial" if self.partial else "centre"
        return "main"

    @property
    def normalization(self) -> str:
        """The name of its kind in the copy of the baseline."""
        return self.kind or self.name

    @property
    def chooses(self) -> bool:
        """Whether its learning rate is chosen by a grid of its own."""
        return not (self.step_size_of or "learning_rate" in self.options)


class Run(NamedTuple):
    """A condition with a seed, and with a learning rate if a grid chooses it."""

    condition: Condition
    seed: int
    step_size: float | None = None

    @property
    def of_grid(self) -> bool:
        """Whether it only serves to choose a learning rate."""
        return self.seed == GRID_SEED

    @property
    def tested(self) -> bool:
        """Whether it translates the test sets. Figure 4 is about the dev set."""
        return not self.of_grid and self.condition.section != "centre"

    @property
    def name(self) -> str:
        """Name of its folder and its log."""
        last = f"step-{self.step_size:g}" if self.of_grid else self.seed
        return f"{self.condition.name}-{last}"
