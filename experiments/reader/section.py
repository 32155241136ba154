"""What the report on the attentive reader says of learning, and the error of a simple answer."""

from ..reporting.section import Section
from ..trials.learning import Column, Comparison, Curve, Expectation, Learning, best, mean_of
from ..trials.sections import Logs

STAND_IN = (
    "**A stand-in for news.** The papers read articles of CNN and their summaries. Here, a question is a sentence of a "
    "novel with a gap in the place of a name, to be found in the eight sentences before it. So only differences "
    "between kinds compare with the published values. The papers' recurrent batch normalization is not among the kinds."
)
_TEXT = (
    "LSTMs with the norm inside read passage and question in both directions. An attention over the passage and a "
    "layer with tanh choose the entity. Entities are numbered anew, at random, in every update. Zhang & Sennrich have "
    "LSTMs of 240 units; Ba et al. read in one direction. The mean validation error over the whole training tells how "
    "fast a network learns; the other values are those of the checkpoint with the lowest validation loss. Values are "
    "means over the seeds, with the standard deviation (sd)."
)
_Z = "Zhang & Sennrich, section 6.2: a curve"
_B = "Ba et al., section 6.2: a curve"
_TEST_ERROR = best("test_error", "nll")
_COLUMNS = (
    Column("mean validation error", mean_of("error"), 1, "%"),
    Column("validation error", best("error", "nll"), 1, "%"),
    Column("test error", _TEST_ERROR, 1, "%"),
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
        margin=1.0,
        unit=" points",
        expectations=[
            Expectation("layernorm", "none", "lower", "LayerNorm learns faster than no norm", _B),
            Expectation("rmsnorm", "none", "lower", "RMSNorm learns faster than no norm", _Z),
            Expectation("rmsnorm", "layernorm", "equal", "RMSNorm learns as fast as LayerNorm", _Z),
            Expectation("prmsnorm", "rmsnorm", "higher", "pRMSNorm learns slightly slower than RMSNorm", _Z),
        ],
    ),
    Comparison(
        "test error",
        _TEST_ERROR,
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
        rows=[[f"{part} questions", f"{error:.1f} %"] for part, error in errors.items()],
        data=errors,
    )
    return [section]
