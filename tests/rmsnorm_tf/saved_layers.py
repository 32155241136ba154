"""Layers of which saved models must load for ever, and the program that writes these models.

    python -m tests.rmsnorm_tf.saved_layers

For each entry of `LAYERS` it writes a model, an input and its output. It writes only missing files
and never rewrites existing ones: every release must load the files of all releases before it.
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
    """A stream that begins with an activation; its mean is subtracted once for three norms."""
    inputs = keras.Input(x.shape[1:])
    stream = keras.layers.Dense(6, "gelu", name="stream")(inputs)
    norms = [keras.layers.LayerNormalization()(stream) for _ in range(3)]
    model = keras.Model(inputs, keras.layers.Add()(norms), name="inner")
    fold_layer_norm(model)
    return model(x)


# By file name: the shape of an input without batch, and what builds the layer.
LAYERS = {
    "rms": (IMAGES, lambda: RMSNormalization(axis=(1, 2), scale_axis=-1, center=True)),
    "rms-partial": (
        VECTORS,
        lambda: RMSNormalization(
            partial=0.25,
            epsilon=1e-5,
            zero_centered_scale=True,
            scale_initializer=keras.initializers.RandomNormal(0.1, seed=3),
            scale_regularizer="l2",
            scale_constraint="non_neg",
        ),
    ),
    "rms-gated": (VECTORS, lambda: gated),
    "folded": (VECTORS, lambda: folded),
    "simple-rnn-cell": (SEQUENCES, lambda: over_time(RMSNormSimpleRNNCell(4))),
    "gru-cell": (SEQUENCES, lambda: over_time(RMSNormGRUCell(4, partial=0.5, epsilon=1e-5))),
    "lstm-cell": (SEQUENCES, lambda: over_time(RMSNormLSTMCell(4, normalize_carry=True))),
    "gru": (
        SEQUENCES,
        lambda: RMSNormGRU(4, return_sequences=True, normalize_bias=True, dropout=0.2),
    ),
    "lstm": (SEQUENCES, lambda: RMSNormLSTM(4, normalization="layer", unit_forget_bias=False)),
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
