"""An attentive reader with every kind of normalization: the task `reader`."""

import itertools
from dataclasses import replace
from typing import Any

import keras
import numpy as np

from ..reporting.judging import Hypothesis
from ..reporting.section import Section
from ..runs.experiment import Experiment
from ..runs.kinds import CELL_CONDITIONS, EPSILON
from ..runs.learning import FASTER, Column, Comparison, Curve, Learning, best, mean_of
from ..runs.networks import Networks, loss_and_error
from ..runs.probes import lstm_shares
from ..runs.run import Condition, Run, Setting
from ..runs.sections import Logs
from .data import ENTITIES, KEPT, PADDING, PASSAGE, Part, most_frequent_wrong, read_corpus
from .model import READERS, UNITS, build_model, lstm_inputs

STAND_IN = (
    "**A stand-in for news.** The papers read articles of CNN and their summaries. Here, a "
    f"passage is {PASSAGE} words of a novel. A question is a sentence of the passage with a gap "
    f"in the place of a name; each of its words is left out with probability {1 - KEPT:.1g}. So "
    "only differences between kinds compare with the published values."
)
_TEXT = (
    "LSTMs with the norm inside read passage and question in both directions. An attention over "
    f"the passage and a layer with tanh choose one of {ENTITIES} entities, which are numbered "
    f"anew, at random, in every update. The LSTMs have {UNITS} units in each direction. Zhang & "
    "Sennrich have 240; Ba et al. read in one direction. The mean validation error over the whole "
    "training tells how fast a network learns; the other values are those of the checkpoint with "
    "the lowest validation loss. Values are means over the seeds, with the standard deviation "
    "(sd). "
    "BN-LSTM and BN-everywhere are the recurrent batch normalization of Cooijmans et al. (2016), "
    "with gains of 0.1. BN-LSTM normalizes inputs, state and cell state of the LSTMs over the "
    "words of a batch at each time step; BN-everywhere also normalizes each term of the sums "
    "before a tanh of the attention and of the layer after it. Padding does not enter the "
    "statistics. Inference has one set of moving averages for all time steps; the paper has a set "
    "for each."
)
_Z = "Zhang & Sennrich, section 6.2: a curve"
_B = "Ba et al., section 6.2: a curve"
_ENDS = "reaches a lower error at its best validation than"
_TEST_ERROR = best("test_error", "nll")
_NAMES = {
    "layernorm": "LayerNorm",
    "rmsnorm": "RMSNorm",
    "batchnorm": "BN-LSTM",
    "batchnorm-everywhere": "BN-everywhere",
}


def _against_batch(words: str) -> list[Hypothesis]:
    """Claims that a value of both norms is lower than with batch normalization."""
    pairs = itertools.product(
        (("layernorm", _B), ("rmsnorm", _Z)), ("batchnorm", "batchnorm-everywhere")
    )
    return [
        Hypothesis(one, other, "lower", f"{_NAMES[one]} {words} {_NAMES[other]}", paper)
        for (one, paper), other in pairs
    ]


def baseline_sections(logs: Logs) -> list[Section]:
    """Returns the section with the error of the entity that a passage names most often."""
    if not logs:
        return []
    errors = next(iter(logs.values()))["most_frequent_error"]
    return [
        Section(
            name="baseline",
            title="The most frequent entity",
            text=[
                "Error of the answer that the passage names most often. If no kind is better by 5 "
                "points, this task shows nothing about norms."
            ],
            columns=["", "error"],
            rows=[[f"{part} questions", f"{error:.1f} %"] for part, error in errors.items()],
            data=errors,
        )
    ]


_PROBED = 16  # validation questions whose activations are measured


class Readers(Networks):
    def build(self, run: Run) -> keras.Model:
        return build_model(run.condition, run.step_size, run.seed, *self.sizes)

    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[list[np.ndarray], np.ndarray]:
        passages, questions, answers = (array[numbers] for array in self.data.train)
        return [passages, questions], answers

    def measure(self, model: keras.Model, part: Part) -> dict[str, float]:
        return loss_and_error(model, [part.passages, part.questions], part.answers, batch_size=128)

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        """Returns the shares in the LSTMs that read forwards."""
        texts = (self.data.valid.passages[:_PROBED], self.data.valid.questions[:_PROBED])
        found = {}
        for name, ids in zip(READERS, texts, strict=True):
            cell = model.get_layer(name).forward_layer.cell
            inputs = lstm_inputs(cell, ids, model.get_layer("words")(ids))
            found |= {
                f"{name} {what}": share
                for what, share in lstm_shares(cell, inputs, ids != PADDING).items()
            }
        return found

    def results(self) -> dict[str, Any]:
        parts = {"valid": self.data.valid, "test": self.data.test}
        return {
            "most_frequent_error": {name: most_frequent_wrong(part) for name, part in parts.items()}
        }


# Recurrent batch normalization needs gains of 0.1; Ba et al. (2016) find that LayerNorm is better
# with 1.
_BATCH_NORM = {"normalization": "batch", "epsilon": EPSILON}
_EVERYWHERE = {**_BATCH_NORM, "normalize_attention": True}

CONDITIONS = [
    *CELL_CONDITIONS,
    Condition("batchnorm", "BN-LSTM", None, paper=True, options=_BATCH_NORM),
    Condition("batchnorm-everywhere", "BN-everywhere", None, options=_EVERYWHERE),
    *(
        replace(
            condition,
            name=f"{condition.name}-gain-0.1",
            label=f"{condition.label}, gains of 0.1",
            paper=False,
            options={**condition.options, "gain": 0.1},
        )
        for condition in CELL_CONDITIONS
        if condition.name in ("layernorm", "rmsnorm")
    ),
]

EXPERIMENT = Experiment(
    name="reader",
    title="An attentive reader",
    about=[STAND_IN],
    conditions=CONDITIONS,
    minutes=1,
    settings=(
        Setting(
            "batch-64", "batches of 64", batch_size=64, updates=400, window=20, validate_every=40
        ),
    ),
    step_sizes=(1e-3, 3e-3, 9e-3),
    metric="nll",
    metric_label="validation loss in nats",
    learning=Learning(
        title="The error (Zhang & Sennrich 2019, section 6.2)",
        text=_TEXT,
        columns=(
            Column("mean validation error", mean_of("error"), 1, "%"),
            Column("validation error", best("error", "nll"), 1, "%"),
            Column("test error at the best validation", _TEST_ERROR, 1, "%"),
            Column("test loss", best("test_nll", "nll"), 3),
        ),
        curves=(
            Curve("train", "loss", "training loss, nats", scale="linear"),
            Curve("validations", "error", "validation error, %", scale="linear"),
        ),
        comparisons=(
            Comparison(
                "mean validation error",
                mean_of("error"),
                unit=" points",
                hypotheses=[
                    Hypothesis("layernorm", "none", "lower", f"LayerNorm {FASTER}", _B),
                    Hypothesis("rmsnorm", "none", "lower", f"RMSNorm {FASTER}", _Z),
                    Hypothesis("batchnorm", "none", "lower", f"BN-LSTM {FASTER}", _Z),
                    Hypothesis(
                        "batchnorm-everywhere", "none", "lower", f"BN-everywhere {FASTER}", _Z
                    ),
                    *_against_batch("learns faster than"),
                    Hypothesis(
                        "rmsnorm", "layernorm", "equal", "RMSNorm learns as fast as LayerNorm", _Z
                    ),
                    Hypothesis(
                        "prmsnorm",
                        "rmsnorm",
                        "higher",
                        "pRMSNorm learns slightly slower than RMSNorm",
                        _Z,
                    ),
                ],
            ),
            Comparison(
                "test error at the best validation",
                _TEST_ERROR,
                unit=" points",
                hypotheses=[
                    Hypothesis(
                        "layernorm",
                        "none",
                        "lower",
                        f"LayerNorm {_ENDS} the model without a norm",
                        _B,
                    ),
                    Hypothesis(
                        "rmsnorm", "none", "lower", f"RMSNorm {_ENDS} the model without a norm", _Z
                    ),
                    *_against_batch(_ENDS),
                    Hypothesis(
                        "rmsnorm",
                        "layernorm",
                        "equal",
                        "RMSNorm has LayerNorm's error at its best validation",
                        _Z,
                    ),
                    Hypothesis(
                        "prmsnorm",
                        "rmsnorm",
                        "equal",
                        "pRMSNorm has RMSNorm's error at its best validation",
                        _Z,
                    ),
                    Hypothesis(
                        "layernorm",
                        "layernorm-gain-0.1",
                        "lower",
                        "LayerNorm needs no gains of 0.1; those of 1 are better",
                        "Ba et al., section 6.2: a sentence",
                    ),
                ],
            ),
        ),
    ),
    load=lambda data: Readers(read_corpus(data)),
    more_sections=baseline_sections,
    share_over="the units, in the LSTMs that read forward",
    published_times={  # seconds of 100 updates
        "none": 315,
        "batchnorm-everywhere": 348,
        "batchnorm": 345,
        "layernorm": 392,
        "rmsnorm": 333,
        "prmsnorm": 330,
    },
    rounds=15,
)
reproduce = EXPERIMENT.reproduce
