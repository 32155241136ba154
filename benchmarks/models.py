"""Times training steps of small whole models with our layer, with Keras's and without a norm, and prints a table.

    python benchmarks/models.py --json MODELS.json

The models are those in which a norm should weigh most: narrow, or with many norms. A step is one of `model.fit`, with
batches of a size that it does not know: eager, in a `tf.function`, or under XLA, which is what `fit` does by default.
"""

import argparse
import functools
import itertools
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from figures_log import write_log
from interleaved import seconds_of
from tables import models as table

from rmsnorm_tf import RMSNormalization

layers = keras.layers
STEPS = 5  # of a call of `fit`
KINDS = {
    "ours": RMSNormalization,
    "keras": layers.RMSNormalization,
    "keras, again": layers.RMSNormalization,
    "no norm": layers.Identity,
}
MODES = {"eager": {"run_eagerly": True}, "graph": {"jit_compile": False}, "XLA": {"jit_compile": True}}


def perceptron(norm):
    """Sixteen residual layers of 64 units; batches of 4,096."""
    x = start = keras.Input((64,))
    for _ in range(16):
        x = x + layers.Dense(64, activation="relu")(norm()(x))
    return keras.Model(start, layers.Dense(1)(norm()(x))), 4096


def transformer(norm):
    """Six pre-norm layers of 64 units with norms of queries and keys; batches of 16 sequences of 128."""
    x = start = keras.Input((128, 64))
    for _ in range(6):
        y = norm()(x)
        queries, keys, values = (layers.Reshape((128, 2, 32))(layers.Dense(64)(y)) for _ in range(3))
        queries, keys = norm()(queries), norm()(keys)
        weights = layers.Softmax()(keras.ops.einsum("bqhd,bkhd->bhqk", queries, keys) / 32**0.5)
        x = x + layers.Dense(64)(layers.Reshape((128, 64))(keras.ops.einsum("bhqk,bkhd->bqhd", weights, values)))
        x = x + layers.Dense(64)(layers.Dense(256, activation="relu")(norm()(x)))
    return keras.Model(start, layers.Dense(1)(norm()(x)[:, 0])), 16


def convolutions(norm):
    """Eight blocks of ConvNeXt's kind with 32 channels; batches of 8 images of 32 by 32."""
    x = start = keras.Input((32, 32, 32))
    for _ in range(8):
        y = norm()(layers.DepthwiseConv2D(3, padding="same")(x))
        x = x + layers.Dense(32)(layers.Dense(64, activation="relu")(y))
    return keras.Model(start, layers.Dense(1)(layers.GlobalAveragePooling2D()(norm()(x)))), 8


def fit(make, norm, mode):
    """Returns a function that makes STEPS training steps."""
    keras.utils.set_random_seed(0)
    model, batch = make(norm)
    model.compile(keras.optimizers.SGD(1e-3), "mse", **MODES[mode])
    generator = np.random.default_rng(0)
    x = generator.normal(size=(STEPS * batch, *model.input_shape[1:])).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((x, x.reshape(len(x), -1)[:, :1])).batch(batch).cache()
    return functools.partial(model.fit, data, verbose=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--modes", nargs="+", default=list(MODES), choices=MODES)
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()
    figures = {}
    for make, mode in itertools.product((perceptron, transformer, convolutions), options.modes):
        calls = {kind: fit(make, norm, mode) for kind, norm in KINDS.items()}
        seconds = seconds_of(calls, options.rounds)
        per_step = {kind: [each / STEPS for each in found] for kind, found in seconds.items()}
        figures.setdefault(make.__doc__.split(";")[0], {})[mode] = per_step
    print("\n".join(table({"figures": figures})[0]))
    if options.json:
        write_log(options.json, "models", {"rounds": options.rounds, "steps": STEPS}, figures)


if __name__ == "__main__":
    main()
