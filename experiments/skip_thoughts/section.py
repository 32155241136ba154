"""What the report on skip-thoughts says of learning."""

from ..trials.learning import Column, Comparison, Curve, Learning, faster, last, mean_of
from .data import LONGEST, WORDS
from .model import Sizes

STAND_IN = (
    "**A stand-in for BookCorpus.** The paper trains on 11,000 books (74 million sentences) for a million updates. "
    f"Here are a few novels and a vocabulary of {WORDS:,} words. The papers' tests of the sentence vectors are left "
    "out: after so short a training, the mean of the word vectors is better in them than the vectors of the GRU."
)
_TEXT = (
    "A GRU with the norm inside reads a sentence. From its last state, two others write the sentence before it and "
    f"the sentence after it, from this state as their first alone. They have {Sizes().units} units and sentences "
    f"have up to {LONGEST} words; the paper has 2,400 units and 30 words. The loss is in nats a word, ends counted. "
    "Its mean over the whole training tells how fast it falls. Values are means over the seeds, with the standard "
    "deviation (sd)."
)
_NO_LOSS = "not in the papers; section 6.3 of Ba et al. has curves of the vectors' scores"
_COLUMNS = (
    Column("mean validation loss", mean_of("nats"), 3),
    Column("last validation loss", last("nats"), 3),
)
_CURVES = (
    Curve("train", "loss", "training loss, nats a word", scale="linear"),
    Curve("validations", "nats", "validation loss, nats a word", scale="linear"),
)
_COMPARISON = Comparison("mean validation loss", mean_of("nats"), unit="%", hypotheses=faster(_NO_LOSS))
LEARNING = Learning("The loss (Ba et al. 2016, section 6.3)", _TEXT, _COLUMNS, _CURVES, [_COMPARISON])
