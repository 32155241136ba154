"""Order embeddings of images and captions: the task `order_embeddings`."""

import keras
import numpy as np
import tensorflow as tf

from ..reporting.judging import Hypothesis
from ..runs.experiment import Experiment
from ..runs.kinds import CELL_CONDITIONS
from ..runs.learning import FASTER, Column, Comparison, Curve, Learning, best, mean_of
from ..runs.networks import Networks, in_batches
from ..runs.probes import gru_shares
from ..runs.run import Run, Setting
from .data import CAPTIONS, Part, read_corpus
from .model import build_model, order_penalties

WITHIN = (1, 5, 10)
_PROBED = 200  # validation captions whose activations are measured
STAND_IN = (
    "**A stand-in for images.** The papers use features of photographs (COCO). Here, an image is "
    "the tf-idf vector of two of its five captions, and the other three are matched with it. So "
    "only differences between kinds compare with the published values."
)
_TEXT = (
    "Images go through one matrix, captions through a GRU with the norm inside. A caption should "
    "be above its image, with a margin of 0.05 against the rest of the batch. Embeddings have 128 "
    "units, in the papers 1,024. Recall at K is how often the right caption (image) is among the "
    "first K of the test images, for the checkpoint with the best recalls on the validation "
    "images. Values are means over the seeds, with their standard deviation (sd). Published: "
    "image R@1/5/10."
)


def _at_best(key: str):
    return best(f"test_{key}", "missed")


class Embeddings(Networks):
    @property
    def examples(self) -> int:
        return self.data.train.images.shape[0] * len(CAPTIONS)

    def build(self, run: Run) -> keras.Model:
        features = self.data.train.images.shape[1]
        return build_model(run.condition, run.step_size, run.seed, features, *self.sizes)

    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[list[np.ndarray], np.ndarray]:
        """Returns images with captions, and targets that the loss does not read."""
        return _pairs(self.data.train, numbers), np.zeros(len(numbers), np.float32)

    def measure(self, model: keras.Model, part: Part) -> dict[str, float]:
        pairs = _pairs(part, np.arange(part.images.shape[0] * len(CAPTIONS)))
        found = model.predict(in_batches(pairs, batch_size=512), verbose=0)  # [pairs, 2, units]
        return retrieval_scores(
            found[:: len(CAPTIONS), 0], found[:, 1].reshape(-1, len(CAPTIONS), found.shape[-1])
        )

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        captions = self.data.valid.captions[:_PROBED, 0]
        return gru_shares(
            model.get_layer("gru").cell, model.get_layer("words")(captions), captions != 0
        )


# XLA never builds [images, captions, units].
_penalties = tf.function(order_penalties, jit_compile=True)


def retrieval_scores(images: np.ndarray, captions: np.ndarray) -> dict[str, float]:
    """Returns recalls in percent and mean ranks.

    Args:
        images: `[images, units]`.
        captions: `[images, captions, units]`.

    Returns:
        `caption_r1`, `caption_r5`, `caption_r10`: how often a caption of the image is among the
        first 1, 5, 10; `image_r1` and so on: how often the image of the caption is; `caption_rank`
        and `image_rank`, the mean ranks from 1 on; and `missed`, 100 minus the mean of the six
        recalls.
    """
    count, per_image, units = captions.shape
    flat = captions.reshape(-1, units)
    penalties = _penalties(images, flat).numpy()
    penalties = np.nan_to_num(penalties, nan=np.inf)  # all tie
    own = np.diagonal(penalties.reshape(count, count, per_image)).T  # [images, captions]
    # Ties with other pairs count against the model. The other captions of an image do not compete
    # with its best one.
    best = own.min(1)[:, None]
    ranks = {
        "caption": 1 + (penalties <= best).sum(1) - (own <= best).sum(1),
        "image": (penalties <= own.reshape(-1)).sum(0),
    }
    found = {}
    for side, rank in ranks.items():
        found |= {f"{side}_r{k}": 100 * float(np.mean(rank <= k)) for k in WITHIN}
    means = {f"{side}_rank": float(np.mean(rank)) for side, rank in ranks.items()}
    return {**found, **means, "missed": 100 - sum(found.values()) / len(found)}


def _pairs(part: Part, numbers: np.ndarray) -> list[np.ndarray]:
    images, captions = np.divmod(numbers, len(CAPTIONS))
    return [part.images[images].toarray(), part.captions[images, captions]]


EXPERIMENT = Experiment(
    name="order_embeddings",
    title="Order embeddings of images and captions",
    about=[STAND_IN],
    conditions=CELL_CONDITIONS,
    minutes=1.1,
    settings=(
        Setting(
            "batch-128",
            "batches of 128",
            batch_size=128,
            updates=1500,
            window=50,
            validate_every=150,
        ),
    ),
    metric="missed",
    metric_label="missed captions and images, %",
    learning=Learning(
        title="Recall (Zhang & Sennrich 2019, section 6.3)",
        text=_TEXT,
        columns=[Column(f"image R@{k}", _at_best(f"image_r{k}"), 1, "%") for k in WITHIN]
        + [Column("image mean rank", _at_best("image_rank"), 1)],
        curves=(
            Curve("train", "loss", "training loss of a batch"),
            Curve("validations", "image_r10", "image R@10, validation, %", scale="linear"),
        ),
        comparisons=(
            Comparison(
                "mean validation image R@10",
                mean_of("image_r10"),
                unit=" points",
                hypotheses=[
                    Hypothesis(
                        "layernorm",
                        "none",
                        "higher",
                        f"LayerNorm {FASTER}",
                        "Ba et al., section 6.1: 60% of the time",
                    ),
                    Hypothesis(
                        "rmsnorm",
                        "none",
                        "higher",
                        f"RMSNorm {FASTER}",
                        "Zhang & Sennrich, section 6.3, figure",
                    ),
                ],
            ),
        ),
        published={
            "none": "37.6/73.6/85.8",
            "layernorm": "38.4/74.6/86.7",
            "rmsnorm": "39.0/74.8/86.3",
            "prmsnorm": "39.0/74.5/86.3",
        },
    ),
    load=lambda data: Embeddings(read_corpus(data)),
    published_times={
        "none": 2.11,
        "layernorm": 12.02,
        "rmsnorm": 7.12,
        "prmsnorm": 4.34,
    },  # seconds of 100 updates
)
reproduce = EXPERIMENT.reproduce
