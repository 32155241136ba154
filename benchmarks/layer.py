"""Times normalization layers and prints tables.

    python benchmarks/layer.py                      # takes some minutes
    python benchmarks/layer.py --shapes 4096x1024 --modes eager xla --dtypes float32
    python benchmarks/layer.py --json LAYER.json

For each shape, dtype, mode and pass, all implementations run in turn for many rounds. A cell of the
tables has the time over that of Keras's layer; after the slash, that of LayerNorm over the same.
"""

import functools
import itertools
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tables
import tensorflow as tf
from runner import parser_of, seconds_of
from tables import KERAS, LAYERNORM, OURS

from rmsnorm_tf import RMSNormalization

SHAPES = ["80x1024", "4096x1024", "16384x1024", "2048x4096"]
DTYPES = ["float32", "bfloat16"]
MODES = {
    "eager": lambda function: function,
    "tf.function": tf.function,
    "xla": functools.partial(tf.function, jit_compile=True),
}
PASSES = ["forward", "forward+backward"]
LAYERS = {
    OURS: RMSNormalization,
    KERAS: keras.layers.RMSNormalization,
    LAYERNORM: keras.layers.LayerNormalization,
}


def call(name, shape, dtype, mode, passes):
    """Returns a function that runs one pass of a layer."""
    layer = LAYERS[name](dtype=dtype)
    (x, dy) = (tf.cast(array, dtype) for array in arrays(shape))
    layer(x)  # builds it

    def forward(x, _):
        return layer(x)

    def both(x, dy):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
        # The result too, so that no compiler removes it.
        return y, tape.gradient(y, [x, *layer.trainable_variables], dy)

    return functools.partial(MODES[mode](forward if passes == "forward" else both), x, dy)


@functools.cache
def arrays(shape):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, np.float32) for _ in range(2)]


def main():
    parser = parser_of(__doc__, dtypes=DTYPES, modes=list(MODES), passes=PASSES, rounds=15)
    parser.add_argument("--shapes", nargs="+", default=SHAPES, help="rows x units")
    options = parser.parse_args()
    shapes = [tuple(map(int, shape.split("x"))) for shape in options.shapes]
    figures = []
    cells = itertools.product(options.dtypes, shapes, options.modes, options.passes)
    for dtype, shape, mode, passes in cells:
        calls = {name: call(name, shape, dtype, mode, passes) for name in LAYERS}
        seconds = seconds_of(calls, options.rounds, seconds_per_turn=0.03)
        cell = {"shape": list(shape), "dtype": dtype, "mode": mode, "passes": passes}
        times = {name: f"{tables.ms(each, 3)} ms" for name, each in seconds.items()}
        print(*cell.values(), times, flush=True)
        figures.append({**cell, "seconds": seconds})
    tables.publish(options, "layer", figures)


if __name__ == "__main__":
    main()
