"""Times normalization layers and prints a table.

    python benchmarks/layer.py                      # everything; takes some minutes
    python benchmarks/layer.py --shapes 4096x1024 --modes eager xla --dtypes float32
    python benchmarks/layer.py --operations gate groups
    python benchmarks/layer.py --json LAYER.json    # for tables.py

For each operation, shape, dtype, mode and pass, all implementations run in turn for many rounds, so that other load on
the machine affects all of them equally.

The operations are the norm, the gated norm, and the norm in eight groups. For the last two, Keras's RMSNormalization is
composed with other operations, and so is "rmsnorm_tf, apart".

Columns: median milliseconds; the ratio to Keras's RMSNormalization; and the ratio to the memory bound. The memory
bound is the time to move x and y, and for the backward pass also dy, x and dx, at the bandwidth of a copy measured in
the same rounds. A gate moves more tensors.
"""

import argparse
import functools
import itertools
import os
import statistics
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from runner import seconds_of, write_log

from rmsnorm_tf import RMSNormalization

SHAPES = ["80x1024", "4096x1024", "16384x1024", "2048x4096"]
DTYPES = ["float32", "bfloat16"]
MODES = ["eager", "tf.function", "xla"]
PASSES = ["forward", "forward+backward"]
OPERATIONS = ["norm", "gate", "groups"]
OURS, KERAS = "rmsnorm_tf", "keras RMSNormalization"
GROUPS = 8
# How many arrays like x move, at the least, in the forward and in the backward pass.
MOVED = {"norm": (2, 3), "groups": (2, 3), "gate": (3, 5)}


class Plain(keras.layers.Layer):
    """The equation, written directly in TensorFlow, with TensorFlow's gradients."""

    def build(self, shape):
        self.scale = self.add_weight(shape=shape[-1:], initializer="ones", name="scale")

    def call(self, x):
        return x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-6) * self.scale


def implementations(operation, shape, dtype):
    """Returns by name a layer and a function of x and another tensor, which returns a list of results."""
    ours, keras_layer = RMSNormalization(dtype=dtype), keras.layers.RMSNormalization(dtype=dtype)
    if operation == "norm":
        others = {
            "keras LayerNormalization": keras.layers.LayerNormalization(dtype=dtype),
            "plain TensorFlow": Plain(dtype=dtype),
        }
        layers = {OURS: ours, KERAS: keras_layer, **others}
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


def copy_call(shape, dtype):
    """Returns a function that copies x with one thread per core, which measures the memory bandwidth."""
    source = np.ones(shape, tf.as_dtype(dtype).as_numpy_dtype).view(np.uint8)
    target = np.empty_like(source)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    pairs = list(zip(np.array_split(target, cores), np.array_split(source, cores), strict=True))
    pool = ThreadPoolExecutor(cores)
    return lambda: list(pool.map(lambda pair: np.copyto(*pair), pairs))


@functools.cache
def arrays(shape):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, np.float32) for _ in range(2)]


def measure(operation, shape, dtype, mode, passes, rounds):
    """Returns the seconds of every round by implementation, and those of the memory bound."""
    cell = (operation, shape, dtype, mode, passes)
    calls = {**tensorflow_calls(*cell), "copy": copy_call(shape, dtype)}
    seconds = seconds_of(calls, rounds, 0.03)
    forward, backward = MOVED[operation]
    arrays_moved = forward if passes == "forward" else forward + backward
    bound = [each / 2 * arrays_moved for each in seconds.pop("copy")]  # a copy moves two arrays
    return seconds, bound


def show(cell, seconds, bound):
    """Prints a row for each implementation."""
    print(*cell)
    medians = {name: statistics.median(rounds) for name, rounds in seconds.items()}
    for name, taken in medians.items():
        ratios = f"{taken / medians[KERAS]:10.2f}{taken / statistics.median(bound):10.1f}"
        print(f"    {name:36}{taken * 1e3:10.3f}{ratios}", flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--operations", nargs="+", default=["norm"], choices=OPERATIONS)
    parser.add_argument("--shapes", nargs="+", default=SHAPES, help="rows x units")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES)
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--passes", nargs="+", default=PASSES, choices=PASSES)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()

    print(f"tensorflow {tf.__version__}, keras {keras.__version__}, {os.cpu_count()} cores")
    print(f"{'':40}{'ms':>10}{'/ Keras':>10}{'/ memory':>10}")
    shapes = [list(map(int, shape.split("x"))) for shape in options.shapes]
    figures = []
    settings = (options.operations, options.dtypes, shapes, options.modes, options.passes)
    for operation, dtype, shape, mode, passes in itertools.product(*settings):
        seconds, bound = measure(operation, tuple(shape), dtype, mode, passes, options.rounds)
        show((operation, shape, dtype, mode, passes), seconds, bound)
        cell = {"operation": operation, "shape": shape, "dtype": dtype, "mode": mode, "passes": passes}
        figures.append({**cell, "seconds": seconds, "bound": bound})
    if options.json:
        write_log(options.json, "layer", {"rounds": options.rounds}, figures)


if __name__ == "__main__":
    main()
