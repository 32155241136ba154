"""What the report on the attentive reader says of learning, and the error of a simple answer."""

from collections.abc import Mapping
from statistics import mean
from typing import Any

from ..reporting.section import Section
from ..trials.learning import Column, Comparison, Curve, Expectation, Learning, best
from ..trials.sections import Logs

STAND_IN = (
    "**A stand-in for news.** The papers read articles of CNN and their summaries. Here, a question is a sentence of a "
    "novel with a gap in the place of a name, to be found in the eight sentences before it. So only differences "
    "between kinds compare with the published values. The papers' recurrent batch normalization is not among the kinds."
)
_TEXT = (
    "LSTMs with the norm inside read passage and question in both directions. An attention over the passage and a "
    "layer with tanh choose the entity. Entities are numbered anew, at random, in every update. The paper has LSTMs of "
    "240 units. Values are means over the seeds, with the standard deviation (sd), of the checkpoint with the lowest "
    "validation loss."
)
_Z = "Zhang & Sennrich, section 6.2: a curve"
_B = "Ba et al., section 6.2: a curve"


def _mean_error(log: Mapping[str, Any]) -> float:
    """Returns the mean validation error in percent over the training, which tells how fast it falls."""
    return 100 * mean(each["error"] for each in log["validations"])


def _test_error(log: Mapping[str, Any]) -> float:
    """Returns the test error in percent of the checkpoint with the lowest validation loss."""
    return 100 * best("test_error", "loss")(log)


_COLUMNS = (
    Column("mean validation error", _mean_error, 1, "%"),
    Column("validation error", lambda log: 100 * best("error", "loss")(log), 1, "%"),
    Column("test error", _test_error, 1, "%"),
    Column("test loss", best("test_loss", "loss"), 3),
)
_CURVES = (
    Curve("train", "loss", "training loss, nats", scale="linear"),
    Curve("validations", "error", "validation error, %", factor=100, scale="linear"),
)
_COMPARISONS = (
    Comparison(
        "mean validation error",
        _mean_error,
        margin=1.0,
        unit=" points",
        expectations=[
            Expectation("layernorm", "none", "lower", "LayerNorm learns faster than no norm", _B),
            Expectation("rmsnorm", "none", "lower", "RMSNorm learns faster than no norm", _Z),
            Expectation("rmsnorm", "layernorm", "equal", "RMSNorm learns as fast as LayerNorm", _Z),
            Expectation("prmsnorm", "layernorm", "equal", "pRMSNorm learns as fast as LayerNorm", _Z),
        ],
    ),
    Comparison(
        "test error",
        _test_error,
        margin=1.0,
        unit=" points",
        expectations=[
            Expectation("layernorm", "none", "lower", "LayerNorm ends with a lower error than no norm", _B),
            Expectation("rmsnorm", "layernorm", "equal", "RMSNorm ends with the error of LayerNorm", _Z),
        ],
    ),
)
LEARNING = Learning("The error (Zhang & Sennrich 2019, section 6.2)", _TEXT, _COLUMNS, _CURVES, _COMPARISONS)


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
        rows=[[f"{part} questions", f"{100 * error:.1f} %"] for part, error in errors.items()],
        data=errors,
    )
    return [section]
