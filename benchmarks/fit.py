"""Times a step of `model.fit` of residual layers with our layer, Keras's, LayerNorm and no norm, and prints a table.

    python benchmarks/fit.py --json benchmarks/results/fit.json
    python benchmarks/fit.py --units 64 --modes default

A model is a stack of `x + Dense(units, "relu")(norm(x))`; a batch has 64 sequences of 64 vectors, and Adam updates.
The modes are those of `compile`: its default, which compiles by XLA where TensorFlow allows it, `jit_compile=True`, and
`jit_compile=False`. A second model with Keras's layer shows the noise.
"""

import functools
import os
from collections.abc import Callable

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

layers = keras.layers
DEPTHS = {64: 6, 256: 6, 512: 4, 1024: 2}  # layers by units
MODES = {"default": {}, "jit_compile=True": {"jit_compile": True}, "jit_compile=False": {"jit_compile": False}}
STEPS = 8  # of a call of `fit`
BATCH = TIME = 64


def residual(norm: Callable[[], layers.Layer], units: int, depth: int) -> keras.Model:
    """Returns a model of `depth` residual layers, and a norm at the end."""
    x = start = keras.Input((TIME, units))
    for _ in range(depth):
        x = x + layers.Dense(units, activation="relu")(norm()(x))
    return keras.Model(start, layers.Dense(1)(norm()(x)))


def steps(norm: Callable[[], layers.Layer], units: int, mode: str) -> Callable[[], object]:
    """Returns a function that makes STEPS steps of training."""
    keras.utils.set_random_seed(0)
    model = residual(norm, units, DEPTHS[units])
    model.compile(keras.optimizers.Adam(1e-3), "mse", **MODES[mode])
    x = np.random.default_rng(0).normal(size=(STEPS * BATCH, TIME, units)).astype("float32")
    return functools.partial(model.fit, x, x[..., :1], batch_size=BATCH, shuffle=False, verbose=0)


def main():
    pass


if __name__ == "__main__":
    main()
