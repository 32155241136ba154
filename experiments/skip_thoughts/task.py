"""Skip-thoughts with every kind of normalization: the task `skip_thoughts`."""

import keras
import numpy as np

from ..runs.experiment import Experiment
from ..runs.kinds import CELL_CONDITIONS
from ..runs.learning import Column, Comparison, Curve, Learning, faster, last, mean_of
from ..runs.networks import Networks, in_batches
from ..runs.probes import gru_shares
from ..runs.run import Run, Setting
from .data import LONGEST, PADDING, WORDS, Part, read_corpus
from .model import UNITS, build_model

STAND_IN = (
    "**A stand-in for BookCorpus.** The paper trains on 11,000 books (74 million sentences) for a "
    f"million updates. Here are a few novels and a vocabulary of {WORDS:,} words. The papers' "
    "tests of the sentence vectors are left out: after so short a training, the mean of the word "
    "vectors is better in them than the vectors of the GRU."
)
_TEXT = (
    "A GRU with the norm inside reads a sentence. From its last state, two others write the "
    "sentence before it and the sentence after it, from this state as their first alone. They "
    f"have {UNITS} units and sentences have up to {LONGEST} words; the paper has 2,400 units and "
    "30 words. The loss is in nats a word, ends counted. Its mean over the whole training tells "
    "how fast it falls. Values are means over the seeds, with the standard deviation (sd)."
)

_PROBED = 64  # validation sentences whose activations are measured
_VALIDATED = 1024  # sentences of a validation


class SkipThoughts(Networks):
    @property
    def examples(self) -> int:
        return len(self.data.train.middles)

    def build(self, run: Run) -> keras.Model:
        return build_model(run.condition, run.step_size, run.seed, *self.sizes)

    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[list[np.ndarray], np.ndarray]:
        """Returns sentences with their neighbours, and the neighbours."""
        return _triples(self.data.train, numbers)

    def measure(self, model: keras.Model, part: Part) -> dict[str, float]:
        """Returns the loss in nats a word, as the mean over batches."""
        triples = _triples(part, _spread_over(part, _VALIDATED))
        return {"nats": model.evaluate(in_batches(*triples, batch_size=64), verbose=0)}

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        """Returns the shares in the GRU that reads sentences."""
        valid = self.data.valid
        ids = valid.ids[valid.middles[_spread_over(valid, _PROBED)]]
        return gru_shares(
            model.get_layer("thought").cell, model.get_layer("words")(ids), ids != PADDING
        )


def _spread_over(part: Part, count: int) -> np.ndarray:
    """Returns the numbers of `count` triples that are evenly spread over a part, or of all."""
    return np.unique(np.linspace(0, len(part.middles) - 1, count).astype(int))


def _triples(part: Part, numbers: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
    middles = part.middles[numbers]
    neighbours = np.stack([part.ids[middles - 1], part.ids[middles + 1]], 1)
    return [part.ids[middles], neighbours], neighbours


EXPERIMENT = Experiment(
    name="skip_thoughts",
    title="Skip-thoughts",
    about=[STAND_IN],
    conditions=CELL_CONDITIONS,
    minutes=1.8,
    settings=(
        Setting(
            "batch-32", "batches of 32", batch_size=32, updates=1500, window=50, validate_every=150
        ),
    ),
    step_sizes=(1e-3 / 3, 1e-3, 3e-3, 9e-3),
    metric="nats",
    metric_label="validation loss in nats a word",
    learning=Learning(
        title="The loss (Ba et al. 2016, section 6.3)",
        text=_TEXT,
        columns=(
            Column("mean validation loss", mean_of("nats"), 3),
            Column("last validation loss", last("nats"), 3),
        ),
        curves=(
            Curve("train", "loss", "training loss, nats a word", scale="linear"),
            Curve("validations", "nats", "validation loss, nats a word", scale="linear"),
        ),
        comparisons=[
            Comparison(
                "mean validation loss",
                mean_of("nats"),
                unit="%",
                hypotheses=faster(
                    "not in the papers; section 6.3 of Ba et al. has curves of the vectors' scores"
                ),
            )
        ],
    ),
    load=lambda data: SkipThoughts(read_corpus(data)),
    share_over="the units, in the GRU that reads",
)
reproduce = EXPERIMENT.reproduce
