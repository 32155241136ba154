"""What the report on the attentive reader says of learning, and the error of a simple answer."""

import itertools

from ..reporting.judging import Hypothesis
from ..reporting.section import Section
from ..runs.learning import FASTER, Column, Comparison, Curve, Learning, best, mean_of
from ..runs.sections import Logs
from .data import ENTITIES, KEPT, PASSAGE
from .model import SIZES

STAND_IN = (
    "**A stand-in for news.** The papers read articles of CNN and their summaries. Here, a passage is "
    f"{PASSAGE} words of a novel. A question is a sentence of the passage with a gap in the place of a name; each of "
    f"its words is left out with probability {1 - KEPT:.1g}. So only differences between kinds compare with the "
    "published values."
)
_TEXT = (
    "LSTMs with the norm inside read passage and question in both directions. An attention over the passage and a "
    f"layer with tanh choose one of {ENTITIES} entities, which are numbered anew, at random, in every update. The "
    f"LSTMs have {SIZES.units} units in each direction. Zhang & Sennrich have 240; Ba et al. read in one direction. "
    "The mean validation error over the whole training tells how fast a network learns; the other values are those of "
    "the checkpoint with the lowest validation loss. Values are means over the seeds, with the standard deviation (sd)."
)
_BATCH = (
    "BN-LSTM and BN-everywhere are the recurrent batch normalization of Cooijmans et al. (2016), with gains of 0.1. "
    "BN-LSTM normalizes inputs, state and cell state of the LSTMs over the words of a batch at each time step; "
    "BN-everywhere also normalizes each term of the sums before a tanh of the attention and of the layer after it. "
    "Padding does not enter the statistics. Inference has one set of moving averages for all time steps; the paper has "
    "a set for each."
)
_Z = "Zhang & Sennrich, section 6.2: a curve"
_B = "Ba et al., section 6.2: a curve"
_GAINS = "LayerNorm needs no gains of 0.1; those of 1 are better"
PUBLISHED_TIMES = {  # seconds of 100 updates
    "none": 315,
    "batchnorm-everywhere": 348,
    "batchnorm": 345,
    "layernorm": 392,
    "rmsnorm": 333,
    "prmsnorm": 330,
}
_ENDS = "reaches a lower error at its best validation than"
_TEST_ERROR = best("test_error", "nll")
_NAMES = {
    "layernorm": "LayerNorm",
    "rmsnorm": "RMSNorm",
    "batchnorm": "BN-LSTM",
    "batchnorm-everywhere": "BN-everywhere",
}


def _against_batch(words: str) -> list[Hypothesis]:
    """Returns that a value of LayerNorm and of RMSNorm is lower than those of both kinds of
    batch normalization."""
    pairs = itertools.product(
        (("layernorm", _B), ("rmsnorm", _Z)), ("batchnorm", "batchnorm-everywhere")
    )
    return [
        Hypothesis(one, other, "lower", f"{_NAMES[one]} {words} {_NAMES[other]}", paper)
        for (one, paper), other in pairs
    ]


_COLUMNS = (
    Column("mean validation error", mean_of("error"), 1, "%"),
    Column("validation error", best("error", "nll"), 1, "%"),
    Column("test error at the best validation", _TEST_ERROR, 1, "%"),
    Column("test loss", best("test_nll", "nll"), 3),
)
_CURVES = (
    Curve("train", "loss", "training loss, nats", scale="linear"),
    Curve("validations", "error", "validation error, %", scale="linear"),
)
_COMPARISONS = (
    Comparison(
        "mean validation error",
        mean_of("error"),
        unit=" points",
        hypotheses=[
            Hypothesis("layernorm", "none", "lower", f"LayerNorm {FASTER}", _B),
            Hypothesis("rmsnorm", "none", "lower", f"RMSNorm {FASTER}", _Z),
            Hypothesis("batchnorm", "none", "lower", f"BN-LSTM {FASTER}", _Z),
            Hypothesis("batchnorm-everywhere", "none", "lower", f"BN-everywhere {FASTER}", _Z),
            *_against_batch("learns faster than"),
            Hypothesis("rmsnorm", "layernorm", "equal", "RMSNorm learns as fast as LayerNorm", _Z),
            Hypothesis(
                "prmsnorm", "rmsnorm", "higher", "pRMSNorm learns slightly slower than RMSNorm", _Z
            ),
        ],
    ),
    Comparison(
        "test error at the best validation",
        _TEST_ERROR,
        unit=" points",
        hypotheses=[
            Hypothesis(
                "layernorm", "none", "lower", f"LayerNorm {_ENDS} the model without a norm", _B
            ),
            Hypothesis("rmsnorm", "none", "lower", f"RMSNorm {_ENDS} the model without a norm", _Z),
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
                _GAINS,
                "Ba et al., section 6.2: a sentence",
            ),
        ],
    ),
)
LEARNING = Learning(
    "The error (Zhang & Sennrich 2019, section 6.2)",
    f"{_TEXT} {_BATCH}",
    _COLUMNS,
    _CURVES,
    _COMPARISONS,
)


def baseline_sections(logs: Logs) -> list[Section]:
    """Returns the section with the error of the entity that a passage names most often."""
    if not logs:
        return []
    errors = next(iter(logs.values()))["most_frequent_error"]
    section = Section(
        name="baseline",
        title="The most frequent entity",
        text=[
            "Error of the answer that the passage names most often. If no kind is better by 5 points, this task shows "
            "nothing about norms."
        ],
        columns=["", "error"],
        rows=[[f"{part} questions", f"{error:.1f} %"] for part, error in errors.items()],
        data=errors,
    )
    return [section]
