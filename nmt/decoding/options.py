"""Defines the options of decoding, for validation, `translate`, `score` and `export`.

They belong to no model. A checkpoint does not depend on them, so they may change from one use of a
model to the next.
"""

import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..config_fields import MOST, between, choice, mistakes, only_with, option, positive
from ..errors import UserError

# The longest translation of a source: LENGTH_FACTOR times its tokens, plus LENGTH_CONSTANT.
# docs/nmt.md has the measurement.
LENGTH_FACTOR = 3
LENGTH_CONSTANT = 20
CONSTRAINTS = ("min_length", "suppress_unknown", "no_repeat_ngram")  # options that forbid words
# Options that choose translations.
SEARCH = (
    "beam_size",
    "normalization_alpha",
    "translation_maxlen",
    *CONSTRAINTS,
)


_sampling_only = functools.partial(only_with, translation_strategy=("sampling",))


@dataclass(frozen=True)
class DecodingOptions:
    """Holds the options of decoding. Defaults are those of every use."""

    batch_size: int = between(128, "sentences translated together", 1, 100_000)
    beam_size: int = between(5, "hypotheses that are kept", 1, 1000)
    normalization_alpha: float = option(
        1.0,
        "divide costs by length to this power; 0: do not divide",
        "from 0 to 10; -n alone: 1",
        lambda value: 0 <= value <= 10,
        nargs="?",
        const=1.0,
        metavar="ALPHA",
    )
    translation_maxlen: int | None = between(
        None,
        "longest translation, in tokens; by default "
        f"{LENGTH_FACTOR} times those of the source plus {LENGTH_CONSTANT}",
        1,
        10_000,
    )
    min_length: int = between(0, "shortest translation, in tokens: none ends before", 0, 10_000)
    suppress_unknown: bool = option(False, "never choose the unknown word")
    no_repeat_ngram: int | None = between(
        None, "never choose the same tokens, this many in a row, twice in a translation", 1, 100
    )
    n_best: bool = option(False, "write the whole beam: line ||| translation ||| cost")
    units: bool = option(
        False, "targets are units of the vocabulary with spaces between them, not text"
    )
    translation_strategy: str = choice(
        "beam_search",
        "search, or draw each word at random: one translation a line, or --beam_size with --n_best",
        ("beam_search", "sampling"),
    )
    sampling_temperature: float = _sampling_only(
        between(
            1.0,
            "divide log-probabilities by this before drawing: below 1 likely words become likelier",
            0.001,
            1000,
        )
    )
    sampling_top_k: int | None = _sampling_only(
        positive(None, "draw from this many likeliest words; by default, from all")
    )
    seed: int = _sampling_only(between(1234, "seed of the sampling", 0, MOST))

    def __post_init__(self) -> None:
        if wrong := mistakes(self) or list(limit_conflicts(self)):
            raise UserError("\n".join(wrong))
        if self.samples and not self.n_best and self.beam_size != DecodingOptions.beam_size:
            raise UserError(
                "--beam_size has no effect with --translation_strategy sampling, which draws one "
                "translation a line; leave it out, or give --n_best"
            )

    @classmethod
    def among(cls, options: dict[str, Any]) -> "DecodingOptions":
        """Returns the options among others, with defaults for those that are missing."""
        names = {field.name for field in dataclasses.fields(cls)}
        return cls(**{name: value for name, value in options.items() if name in names})

    @property
    def samples(self) -> bool:
        """Whether translations are drawn at random."""
        return self.translation_strategy == "sampling"

    @property
    def hypotheses(self) -> int:
        """Translations that are found for each sentence."""
        return 1 if self.samples and not self.n_best else self.beam_size

    @property
    def search(self) -> str:
        """A string that identifies the search settings."""
        search = f"beam {self.beam_size} alpha {self.normalization_alpha:g}"
        constraints = [
            f"{name} {getattr(self, name)}" for name in CONSTRAINTS if getattr(self, name)
        ]
        return " ".join([search, f"limit {self.translation_maxlen}", *constraints])

    def limits(self, lengths: Any) -> Any:
        """Returns the longest translations, in tokens, of sources of these lengths."""
        if self.translation_maxlen:
            return lengths * 0 + self.translation_maxlen
        return lengths * LENGTH_FACTOR + max(LENGTH_CONSTANT, self.min_length)


def limit_conflicts(config: Any) -> Iterator[str]:
    """Yields a message if the shortest translation is longer than the longest."""
    most = config.translation_maxlen
    if most and config.min_length > most:
        yield (
            f"--min_length is {config.min_length} and --translation_maxlen {most}; "
            "give a smaller --min_length or a larger limit"
        )
