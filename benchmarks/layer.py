"""Times normalization layers and prints a table.

    python benchmarks/layer.py                      # everything; takes some minutes
    python benchmarks/layer.py --shapes 4096x1024 --modes eager xla --dtypes float32
    python benchmarks/layer.py --operations gate groups
    python benchmarks/layer.py --json LAYER.json    # for tables.py

For each operation, shape, dtype, mode and pass, all implementations run in turn for many rounds. The operations are the
norm, the gated norm, and the norm in eight groups. For the last two, Keras's RMSNormalization is composed with other
operations, and so is "rmsnorm_tf, apart".

A cell of the tables has the time over that of Keras's layer; after the slash, that of LayerNorm over the same or, for
the other operations, ours over "apart".
"""

import functools
import itertools
import os
from statistics import median

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
MODES = ["eager", "tf.function", "xla"]
PASSES = ["forward", "forward+backward"]
OPERATIONS = ["norm", "gate", "groups"]
GROUPS = 8


def implementations(operation, shape, dtype):
    """Returns by name a layer and a function of x and another tensor, which returns a list of results."""
    ours, keras_layer = RMSNormalization(dtype=dtype), keras.layers.RMSNormalization(dtype=dtype)
    if operation == "norm":
        layers = {OURS: ours, KERAS: keras_layer, LAYERNORM: keras.layers.LayerNormalization(dtype=dtype)}
        return {name: (layer, lambda x, _, layer=layer: [layer(x)]) for name, layer in layers.items()}
    if operation == "gate":
        functions = {OURS: (ours, lambda x, other: [ours(x, gate=other)])}

        def apart(x, other, layer):
            return [layer(x) * keras.ops.silu(other)]

    else:
        together = RMSNormalization(groups=GROUPS, dtype=dtype)
        functions = {OURS: (together, lambda x, _: [together(x)])}
        options = {"axis": -1, "dtype": dtype}
        ours, keras_layer = RMSNormalization(**options), keras.layers.RMSNormalization(**options)

        def apart(x, _, layer):
            return [tf.reshape(layer(tf.reshape(x, (-1, GROUPS, shape[-1] // GROUPS))), shape)]

    return functions | {
        f"{OURS}, apart": (ours, functools.partial(apart, layer=ours)),
        KERAS: (keras_layer, functools.partial(apart, layer=keras_layer)),
    }


def tensorflow_calls(operation, shape, dtype, mode, passes):
    """Returns a function that runs one pass, for each TensorFlow implementation."""
    tensors = [tf.cast(a, dtype) for a in arrays(shape)]
    wrap = {
        "eager": lambda function: function,
        "tf.function": tf.function,
        "xla": functools.partial(tf.function, jit_compile=True),
    }[mode]
    functions = implementations(operation, shape, dtype)
    return {name: tensorflow_call(*function, *tensors, wrap, passes) for name, function in functions.items()}


def tensorflow_call(layer, function, x, other, wrap, passes):
    function(x, other)  # builds the layer

    def forward(x, other):
        return function(x, other)

    def both(x, other):
        with tf.GradientTape() as tape:
            tape.watch([x, other])
            results = function(x, other)
        sources, upstream = [x, other, *layer.trainable_variables], [other, x][: len(results)]
        # The results too, so that no compiler removes them.
        return results, tape.gradient(results, sources, upstream, unconnected_gradients="none")

    call = wrap(forward if passes == "forward" else both)
    return lambda: call(x, other)


@functools.cache
def arrays(shape):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, np.float32) for _ in range(2)]


def main():
    parser = parser_of(__doc__, dtypes=DTYPES, modes=MODES, passes=PASSES, rounds=15)
    parser.add_argument("--operations", nargs="+", default=["norm"], choices=OPERATIONS)
    parser.add_argument("--shapes", nargs="+", default=SHAPES, help="rows x units")
    options = parser.parse_args()
    shapes = [list(map(int, shape.split("x"))) for shape in options.shapes]
    figures = []
    settings = (options.operations, options.dtypes, shapes, options.modes, options.passes)
    for operation, dtype, shape, mode, passes in itertools.product(*settings):
        calls = tensorflow_calls(operation, tuple(shape), dtype, mode, passes)
        seconds = seconds_of(calls, options.rounds, seconds_per_turn=0.03)
        cell = {"operation": operation, "shape": shape, "dtype": dtype, "mode": mode, "passes": passes}
        print(*cell.values(), {name: f"{1e3 * median(each):.3f} ms" for name, each in seconds.items()}, flush=True)
        figures.append({**cell, "seconds": seconds})
    tables.publish(options, "layer", figures)


if __name__ == "__main__":
    main()
