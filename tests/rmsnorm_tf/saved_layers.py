"""Layers of which saved models must load for ever, and the program that writes these models.

    python -m tests.rmsnorm_tf.saved_layers

For each entry of `LAYERS` it writes a model, an input and its output. It writes only missing files
and never rewrites existing ones: every release must load the files of all earlier releases.
"""

from pathlib import Path

import keras
import numpy as np

from rmsnorm_tf import (
    RMSNormalization,
    RMSNormGRU,
    RMSNormGRUCell,
    RMSNormLSTM,
    RMSNormLSTMCell,
    RMSNormSimpleRNNCell,
    fold_layer_norm,
)

FOLDER = Path(__file__).parents[1] / "data" / "golden" / "layers"

VECTORS = (10,)
SEQUENCES = (4, 3)
IMAGES = (4, 5, 3)


def over_time(*cells, **options):
    return keras.layers.RNN(
        list(cells) if len(cells) > 1 else cells[0], return_sequences=True, **options
    )


def gated(x):
    return RMSNormalization(center=True)(x, gate=keras.layers.Dense(x.shape[-1])(x))


def folded(x):
    """A stream that begins with an activation: three norms read it, so its mean is subtracted once."""
    inputs = keras.Input(x.shape[1:])
    stream = keras.layers.Dense(6, "gelu", name="stream")(inputs)
    norms = [keras.layers.LayerNormalization()(stream) for _ in range(3)]
    model = keras.Model(inputs, keras.layers.Add()(norms), name="inner")
    fold_layer_norm(model)
    return model(x)


# By file name: the shape of an input without batch, and what builds the layer.
LAYERS = {
    "rms-default": (VECTORS, lambda: RMSNormalization()),
    "rms-partial": (VECTORS, lambda: RMSNormalization(partial=0.25, epsilon=1e-5)),
    "rms-center": (VECTORS, lambda: RMSNormalization(center=True)),
    "rms-no-scale": (VECTORS, lambda: RMSNormalization(scale=False)),
    "rms-zero-centered": (VECTORS, lambda: RMSNormalization(zero_centered_scale=True, center=True)),
    "rms-first-axis": (IMAGES, lambda: RMSNormalization(axis=1, partial=0.5, fused=False)),
    "rms-outer-axes": (IMAGES, lambda: RMSNormalization(axis=(-1, 1), center=True)),
    "rms-scale-axis": (IMAGES, lambda: RMSNormalization(axis=(1, 2), scale_axis=-1, center=True)),
    "rms-fused": (VECTORS, lambda: RMSNormalization(fused=True)),
    "rms-groups": (VECTORS, lambda: RMSNormalization(groups=2, partial=0.5)),
    "rms-gated": (VECTORS, lambda: gated),
    "rms-mixed": (VECTORS, lambda: RMSNormalization(dtype="mixed_bfloat16")),
    "rms-options": (
        VECTORS,
        lambda: RMSNormalization(
            center=True,
            scale_initializer=keras.initializers.RandomNormal(0.1, seed=3),
            offset_initializer="ones",
            scale_regularizer="l2",
            offset_regularizer=keras.regularizers.L1(0.5),
            scale_constraint="non_neg",
            offset_constraint=keras.constraints.MaxNorm(4.0),
            activity_regularizer="l2",
            trainable=False,
        ),
    ),
    "folded": (VECTORS, lambda: folded),
    "simple-rnn-cell": (SEQUENCES, lambda: over_time(RMSNormSimpleRNNCell(4))),
    "simple-rnn-cell-layer": (
        SEQUENCES,
        lambda: over_time(RMSNormSimpleRNNCell(4, normalization="layer")),
    ),
    "gru-cell": (SEQUENCES, lambda: over_time(RMSNormGRUCell(4, partial=0.5, epsilon=1e-5))),
    "gru-cell-reset-before": (
        SEQUENCES,
        lambda: over_time(RMSNormGRUCell(4, reset_after=False, use_bias=False)),
    ),
    "gru-cell-none": (SEQUENCES, lambda: over_time(RMSNormGRUCell(4, normalization=None))),
    "lstm-cell": (SEQUENCES, lambda: over_time(RMSNormLSTMCell(4, normalize_carry=True))),
    "lstm-cell-layer": (
        SEQUENCES,
        lambda: over_time(RMSNormLSTMCell(4, normalization="layer", normalize_bias=True)),
    ),
    "cells-stacked": (
        SEQUENCES,
        lambda: over_time(RMSNormGRUCell(4), RMSNormLSTMCell(3), RMSNormSimpleRNNCell(2)),
    ),
    "gru": (SEQUENCES, lambda: RMSNormGRU(4)),
    "gru-options": (
        SEQUENCES,
        lambda: RMSNormGRU(
            4,
            return_sequences=True,
            go_backwards=True,
            partial=0.25,
            normalize_bias=True,
            dropout=0.2,
            recurrent_dropout=0.1,
            kernel_regularizer="l2",
            recurrent_constraint="max_norm",
        ),
    ),
    "gru-layer": (
        SEQUENCES,
        lambda: RMSNormGRU(4, normalization="layer", return_sequences=True, unroll=True),
    ),
    "gru-bidirectional": (
        SEQUENCES,
        lambda: keras.layers.Bidirectional(RMSNormGRU(4, return_sequences=True)),
    ),
    "lstm": (SEQUENCES, lambda: RMSNormLSTM(4)),
    "lstm-options": (
        SEQUENCES,
        lambda: RMSNormLSTM(
            4, return_sequences=True, normalize_carry=True, partial=0.5, unit_forget_bias=False
        ),
    ),
    "lstm-none": (SEQUENCES, lambda: RMSNormLSTM(4, normalization=None, return_sequences=True)),
}


def write(name: str) -> None:
    """Saves a model of the layer with random weights, an input, and the output."""
    shape, make = LAYERS[name]
    inputs = keras.Input(shape, name="x")
    model = keras.Model(inputs, make()(inputs), name=name.replace("-", "_"))
    rng = np.random.default_rng(sorted(LAYERS).index(name))
    model.set_weights([rng.normal(size=w.shape) for w in model.get_weights()])
    x = rng.normal(size=(2, *shape)).astype("float32")
    model.save(FOLDER / f"{name}.keras")
    np.savez(FOLDER / f"{name}.npz", x=x, y=keras.ops.cast(model(x), "float32"))


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for missing in (name for name in LAYERS if not (FOLDER / f"{name}.npz").exists()):
        write(missing)
        print(FOLDER / f"{missing}.keras")
