"""What the report on order embeddings says of learning."""

from ..reporting.judging import Hypothesis
from ..trials.learning import FASTER, Column, Comparison, Curve, Learning, best, mean_of
from .retrieval import WITHIN

STAND_IN = (
    "**A stand-in for images.** The papers use features of photographs (COCO). Here, an image is the tf-idf vector of "
    "two of its five captions, and the other three are matched with it. So only differences between kinds compare with "
    "the published values."
)
_TEXT = (
    "Images go through one matrix, captions through a GRU with the norm inside. A caption should be above its image, "
    "with a margin of 0.05 against the rest of the batch. Embeddings have 128 units, in the papers 1,024. Recall at K "
    "is how often the right caption (image) is among the first K of the test images, for the checkpoint with the best "
    "recalls on the validation images. Values are means over the seeds, with their standard deviation (sd). "
    "Published: image R@1/5/10."
)
_PUBLISHED = {
    "none": "37.6/73.6/85.8",
    "layernorm": "38.4/74.6/86.7",
    "rmsnorm": "39.0/74.8/86.3",
    "prmsnorm": "39.0/74.5/86.3",
}
PUBLISHED_TIMES = {"none": 2.11, "layernorm": 12.02, "rmsnorm": 7.12, "prmsnorm": 4.34}  # seconds of 100 updates
_Z = "Zhang & Sennrich, section 6.3"
_B = "Ba et al., section 6.1"


def _at_best(key: str):
    return best(f"test_{key}", "missed")


_COLUMNS = [Column(f"image R@{k}", _at_best(f"image_r{k}"), 1, "%") for k in WITHIN] + [
    Column("image mean rank", _at_best("image_rank"), 1)
]
_CURVES = (
    Curve("train", "loss", "training loss of a batch"),
    Curve("validations", "image_r10", "image R@10, validation, %", scale="linear"),
)
_COMPARISONS = (
    Comparison(
        "mean validation image R@10",
        mean_of("image_r10"),
        unit=" points",
        hypotheses=[
            Hypothesis("layernorm", "none", "higher", f"LayerNorm {FASTER}", f"{_B}: 60% of the time"),
            Hypothesis("rmsnorm", "none", "higher", f"RMSNorm {FASTER}", f"{_Z}, figure"),
        ],
    ),
)
LEARNING = Learning("Recall (Zhang & Sennrich 2019, section 6.3)", _TEXT, _COLUMNS, _CURVES, _COMPARISONS, _PUBLISHED)
