"""What the report on order embeddings says of learning."""

from ..trials.learning import Column, Comparison, Curve, Expectation, Learning, best, mean_of
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
    "Published: caption R@1/5/10 | image R@1/5/10."
)
_PUBLISHED = {
    "none": "45.8/79.7/88.8 \\| 37.6/73.6/85.8",
    "layernorm": "47.9/79.5/89.2 \\| 38.4/74.6/86.7",
    "rmsnorm": "48.7/79.7/89.5 \\| 39.0/74.8/86.3",
    "prmsnorm": "46.8/79.8/90.3 \\| 39.0/74.5/86.3",
}
PUBLISHED_TIMES = {"none": 2.11, "layernorm": 12.02, "rmsnorm": 7.12, "prmsnorm": 4.34}  # seconds of 100 updates
_Z = "Zhang & Sennrich, section 6.3"
_B = "Ba et al., section 6.1"


def _at_best(key: str):
    return best(f"test_{key}", "missed")


_COLUMNS = [
    Column(f"{side} R@{k}", _at_best(f"{side}_r{k}"), 1, "%") for side in ("caption", "image") for k in WITHIN
] + [Column(f"{side} mean rank", _at_best(f"{side}_rank"), 1) for side in ("caption", "image")]
_CURVES = (
    Curve("train", "loss", "training loss of a batch"),
    Curve("validations", "image_r10", "image R@10, validation, %", scale="linear"),
)
_COMPARISONS = (
    Comparison(
        "mean validation image R@10",
        mean_of("image_r10"),
        margin=1.0,
        unit=" points",
        expectations=[
            Expectation(
                "layernorm", "none", "higher", "LayerNorm learns faster than no norm", f"{_B}: 60% of the time"
            ),
            Expectation("rmsnorm", "none", "higher", "RMSNorm learns faster than no norm", f"{_Z}, figure"),
        ],
    ),
    Comparison(
        "caption R@1",
        _at_best("caption_r1"),
        margin=1.0,
        unit=" points",
        expectations=[
            Expectation(
                "layernorm", "none", "higher", "LayerNorm finds more captions than no norm", f"{_B}: 48.5, 46.6"
            ),
            Expectation("rmsnorm", "none", "higher", "RMSNorm finds more captions than no norm", f"{_Z}: 48.7, 45.8"),
            Expectation(
                "rmsnorm", "layernorm", "equal", "RMSNorm finds as many captions as LayerNorm", f"{_Z}: 48.7, 47.9"
            ),
            Expectation(
                "prmsnorm", "layernorm", "equal", "pRMSNorm finds as many captions as LayerNorm", f"{_Z}: 46.8, 47.9"
            ),
        ],
    ),
)
LEARNING = Learning("Recall (Zhang & Sennrich 2019, section 6.3)", _TEXT, _COLUMNS, _CURVES, _COMPARISONS, _PUBLISHED)
