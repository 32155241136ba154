"""Recall and mean rank of captions found by images, and of images found by captions."""

import numpy as np
import tensorflow as tf

from .model import order_penalties

WITHIN = (1, 5, 10)

_penalties = tf.function(
    order_penalties, jit_compile=True
)  # XLA never builds [images, captions, units]


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
    own = penalties.reshape(count, count, per_image)[
        np.arange(count), np.arange(count)
    ]  # [images, captions]
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
