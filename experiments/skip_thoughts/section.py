"""What the report on skip-thoughts says of learning, and what the sentence vectors are good for."""

from collections.abc import Mapping
from typing import Any

from ..reporting.section import Section
from ..trials.learning import Column, Comparison, Curve, Expectation, Learning, cell, last, mean_of
from ..trials.sections import Logs, logs_by_row, settings_of
from .data import LONGEST, WORDS
from .model import Sizes
from .transfer import MOST

STAND_IN = (
    "**A stand-in for BookCorpus.** The paper trains on 11,000 books (74 million sentences) for a million updates. "
    f"Here are a few novels and a vocabulary of {WORDS:,} words. So the scores of the sentence vectors are low, and "
    "only differences between kinds compare with the published values."
)
_TEXT = (
    "A GRU with the norm inside reads a sentence. From its last state, two others write the sentence before it and "
    f"the sentence after it, from this state as their first alone. They have {Sizes().units} units and sentences "
    f"have up to {LONGEST} words; the paper has 2,400 units and 30 words. The loss is in nats a word, ends counted. "
    "Its mean over the whole training tells how fast it falls. Values are means over the seeds, with the standard "
    "deviation (sd)."
)
_PAPER = "Ba et al., section 6.3"
_NO_LOSS = "not in the papers; section 6.3 of Ba et al. has curves of the vectors' scores"
_PUBLISHED = {
    "none": {"SICK r": 84.2, "SICK rho": 76.7, "SICK MSE": 0.298, "MR": 77.3, "CR": 81.8, "SUBJ": 92.6, "MPQA": 87.9},
    "layernorm": {
        "SICK r": 85.4,
        "SICK rho": 78.5,
        "SICK MSE": 0.277,
        "MR": 79.5,
        "CR": 82.6,
        "SUBJ": 93.4,
        "MPQA": 89.0,
    },
}
_SCORES = ("SICK r", "SICK rho", "SICK MSE", "MR", "CR", "SUBJ", "MPQA", "mean")
_CONTROLS = {"untrained": "untrained network", "mean_word": "mean of the trained word vectors"}


def _transfer(log: Mapping[str, Any]) -> float:
    return log["transfer"]["mean"]


_COLUMNS = (
    Column("mean validation loss", mean_of("nats"), 3),
    Column("last validation loss", last("nats"), 3),
    Column("mean score of the vectors", _transfer, 1),
)
_CURVES = (
    Curve("train", "loss", "training loss, nats a word", scale="linear"),
    Curve("validations", "nats", "validation loss, nats a word", scale="linear"),
)
_COMPARISONS = (
    Comparison(
        "mean validation loss",
        mean_of("nats"),
        margin=1.0,
        unit="%",
        expectations=[
            Expectation("layernorm", "none", "lower", "LayerNorm lowers the loss faster than no norm", _NO_LOSS),
            Expectation("rmsnorm", "none", "lower", "RMSNorm lowers the loss faster than no norm", "not in the papers"),
            Expectation("rmsnorm", "layernorm", "equal", "RMSNorm learns as fast as LayerNorm", "not in the papers"),
        ],
    ),
    Comparison(
        "mean score of the vectors",
        _transfer,
        margin=1.0,
        unit=" points",
        expectations=[
            Expectation(
                "layernorm",
                "none",
                "higher",
                "LayerNorm gives better vectors than no norm",
                f"{_PAPER}: all seven values of Table 3",
            ),
            Expectation("rmsnorm", "none", "higher", "RMSNorm gives better vectors than no norm", "not in the papers"),
            Expectation(
                "rmsnorm", "layernorm", "equal", "RMSNorm's vectors are as good as LayerNorm's", "not in the papers"
            ),
        ],
    ),
)
LEARNING = Learning("The loss (Ba et al. 2016, section 6.3)", _TEXT, _COLUMNS, _CURVES, _COMPARISONS)


def transfer_sections(logs: Logs) -> list[Section]:
    """Returns the section with the scores of the sentence vectors, beside two controls and the published values."""
    done = [(row, found) for setting in settings_of(logs) for row, found in logs_by_row(logs, setting).items()]
    if not done:
        return []
    rows = [[row.label, *_cells(found, "transfer")] for row, found in done]
    rows += [[f"{row.label}, {label}", *_cells(found, key)] for key, label in _CONTROLS.items() for row, found in done]
    rows += [
        [f"{row.label}, published", *(str(_PUBLISHED[row.name].get(name, "")) for name in _SCORES)]
        for row, _ in done
        if row.name in _PUBLISHED
    ]
    section = Section(
        name="transfer",
        title="What the sentence vectors are good for",
        text=[
            "Relatedness of sentences (SICK: Pearson's r and Spearman's rho times 100, and mean squared error) and the "
            "accuracy of a logistic regression in five folds (MR, CR, SUBJ, MPQA; the paper has ten), on up to "
            f"{MOST:,} examples of each file, cut off after {LONGEST} words. The mean is that of the six values "
            "besides the error. The untrained network has the same seed: if it is as good, the training was of no "
            "use. If the mean of the word vectors is as good, the order of the words was of no use."
        ],
        columns=["", *_SCORES],
        rows=rows,
        data={
            row.name: {str(seed): {key: log[key] for key in ("transfer", *_CONTROLS)} for seed, log in found.items()}
            for row, found in done
        },
    )
    return [section]


def _cells(found: Mapping[int, Mapping[str, Any]], key: str) -> list[str]:
    digits = {"SICK MSE": 3}
    return [cell([log[key][name] for log in found.values()], digits.get(name, 1)) for name in _SCORES]
