"""Measures the norms of an untrained model; runs in the patched copy of the baseline.

    python -m experiments.translation.inside.untrained_norms --kinds layernorm rmsnorm --size 128 256 --to FILE.json

The model is an RNN with initial weights that gets random words. Doubling the weights in front of a norm doubles its
input, because all biases start at 0.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from nmt.config import Config
from nmt.model.rnnsearch import RNNSearch
from nmt.normalization import EPSILON
from nmt.storage.files import atomic_write

from .norm_inputs import Call, record_inputs

WORDS, BATCH, TIME = 1000, 8, 12
SEED = 1


def measure_norms(kind: str, embedding_size: int, state_size: int) -> dict[str, dict[str, float]]:
    """Returns measurements of every norm, by its path in the model.

    Args:
        kind: Kind of normalization, not `none`.
        embedding_size: Size of the word embeddings.
        state_size: Size of each GRU.

    Returns:
        For each norm: the number of entries that it normalizes (`units`); the `mean_square` of its input; the root mean
        square of its output (`rms`); and the largest change of an output if the weights in front of the norm are
        doubled, relative to the largest output (`change`).
    """
    keras.utils.set_random_seed(SEED)
    config = Config(embedding_size=embedding_size, state_size=state_size, layer_normalization_type=kind)
    model = RNNSearch(config, WORDS, WORDS)
    norms = record_inputs(model, kind)
    words = tf.constant(np.random.default_rng(SEED).integers(1, WORDS, (2, BATCH, TIME)), tf.int32)
    mask = tf.ones([BATCH, TIME])
    model.costs(words[0], mask, words[1], mask)
    return {path: _measure(norm, tf.concat(inputs, 0)) for path, (norm, inputs) in norms.items()}


def _measure(norm: Call, x: tf.Tensor) -> dict[str, float]:
    y, doubled = norm(x).numpy(), norm(2 * x).numpy()
    return {
        "units": x.shape[-1],
        "mean_square": float(tf.reduce_mean(x**2)),
        "rms": float(np.sqrt(np.mean(y**2))),
        "change": float(np.abs(doubled - y).max() / np.abs(y).max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", nargs="+", required=True, metavar="KIND")
    sizes = {"nargs": 2, "type": int, "action": "append", "metavar": ("EMBEDDING", "STATE")}
    parser.add_argument("--size", required=True, help="may be given several times", **sizes)
    parser.add_argument("--to", type=Path, required=True, metavar="FILE", help="where the figures go, as JSON")
    options = parser.parse_args()
    measured: dict[str, Any] = {
        "epsilon": EPSILON,
        "sizes": [
            {
                "embedding_size": one,
                "state_size": other,
                "norms": {k: measure_norms(k, one, other) for k in options.kinds},
            }
            for one, other in options.size
        ],
    }
    with atomic_write(options.to) as file:
        json.dump(measured, file, indent=2)


if __name__ == "__main__":
    main()
