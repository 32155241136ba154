"""Measures what must not grow: the errors of the layer with the length of a row, its memory with traces and shapes.

    python benchmarks/limits.py --json benchmarks/results/limits.json

Errors: both passes of normal rows of each length, of a few columns of as many rows, and one and three rows of which all
entries are the same, the worst of several values, against NumPy in float64; the largest difference, relative to the
largest value.

Memory: what the process gains, and how many graphs stay, when a `tf.function` of eight norms and gradients is traced
100 times, and when 200 shapes are called with `fused=True`. Each is measured in a process of its own.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from figures_log import write_log

from rmsnorm_tf import RMSNormalization, rms_norm

LENGTHS = [2, 16, 1024, 1500, 3072, 10_000, 65_537, 1_000_003, 2**22, 2**24]
VALUES = [0.1, *(0.5 + i / 24 for i in range(13))]  # of constant rows
MODES = ["plain", "compiled", "unknown sizes", "keras, XLA"]
EPSILON = 1e-6


def norm(mode):
    """Returns a function that normalizes the last axis, in one of the modes."""
    if mode == "keras, XLA":
        return tf.function(lambda x, scale: keras.ops.rms_normalization(x, scale, epsilon=EPSILON), jit_compile=True)
    if mode == "unknown sizes":
        specs = [tf.TensorSpec((None, None)), tf.TensorSpec(None)]
        return tf.function(lambda x, scale: rms_norm(x, scale, epsilon=EPSILON), input_signature=specs)
    return lambda x, scale: rms_norm(x, scale, epsilon=EPSILON, fused=mode == "compiled")


def errors(mode, x, dy, scale):
    """Returns the errors of y and of the gradients of x and scale, each relative to its largest value."""
    sources = [tf.constant(each) for each in (x, scale)]
    with tf.GradientTape() as tape:
        tape.watch(sources)
        y = norm(mode)(*sources)
    actual = [y, *tape.gradient(y, sources, tf.constant(dy))]
    x, dy, scale = (each.astype(np.float64) for each in (x, dy, scale))
    u = 1 / np.sqrt(np.mean(x**2, -1, keepdims=True) + EPSILON)
    z, g = x * u, dy * scale
    expected = [z * scale, u * (g - z * np.mean(g * z, -1, keepdims=True)), np.sum(dy * z, 0)]
    return [float(np.max(np.abs(a - e)) / np.max(np.abs(e))) for a, e in zip(actual, expected, strict=True)]


def error_of_y(mode, x):
    """Returns the error of y without the other figures, relative to its largest value."""
    y, wide = np.asarray(norm(mode)(tf.constant(x), tf.ones(x.shape[1])), np.float64), np.float64(x[0, 0])
    return float(np.max(np.abs(y * np.sqrt(wide**2 + EPSILON) / wide - 1)))


def errors_by_length(mode, length):
    """Returns the errors of a normal row, of a few columns, and of constant rows."""
    rng = np.random.default_rng(0)
    row, dy, scale = (rng.standard_normal(shape, np.float32) for shape in ((1, length), (1, length), length))
    width = 16 if length < 2**20 else 2
    shapes = ((length, width), (length, width), width)
    columns, upstream, few = (rng.standard_normal(shape, np.float32) for shape in shapes)
    values = VALUES if length < 2**16 else VALUES[::6]
    constant = (np.full((rows, length), value, np.float32) for rows in (1, 3) for value in values)
    y, dx, _ = errors(mode, row, dy, scale)
    return {
        "y": y,
        "dx": dx,
        "dscale of as many rows": errors(mode, columns, upstream, few)[2],
        "y of constant rows": max(error_of_y(mode, rows) for rows in constant),
    }


def resident():
    """Returns the megabytes of this process."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def trace(make):
    """Traces the gradient of eight norms."""
    layers = [make() for _ in range(8)]
    for layer in layers:
        layer.build((None, 64))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            for layer in layers:
                x = layer(x)
            loss = tf.reduce_sum(x)
        return tape.gradient(loss, [layer.trainable_variables[0].value for layer in layers])

    step.get_concrete_function(tf.TensorSpec((None, 64)))


def growth(what):
    """Returns the megabytes and graphs that stay, and the seconds, of one kind of repetition."""
    make = keras.layers.RMSNormalization if what.startswith("keras") else RMSNormalization
    trace(make)
    gc.collect()
    before, started = resident(), time.perf_counter()
    graphs = sum(isinstance(each, tf.Graph) for each in gc.get_objects())
    if what == "shapes":
        for rows in range(1, 201):
            rms_norm(tf.ones((rows, 8)), fused=True)
    else:
        for _ in range(100):
            trace(make)
    seconds = time.perf_counter() - started
    gc.collect()
    left = sum(isinstance(each, tf.Graph) for each in gc.get_objects()) - graphs
    return {"MB": resident() - before, "graphs": left, "seconds": seconds}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file")
    parser.add_argument("--growth", choices=["keras traces", "traces", "shapes"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.growth:
        print(json.dumps(growth(options.growth)))
        return
    figures = {"errors": {}, "growth": {}}
    for mode in MODES:
        for length in LENGTHS:
            figures["errors"].setdefault(mode, {})[length] = found = errors_by_length(mode, length)
            print(f"{mode:16}{length:12}", *(f"{name} {value:.1e}" for name, value in found.items()), flush=True)
    for what in ("keras traces", "traces", "shapes"):
        command = [sys.executable, __file__, "--growth", what]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        figures["growth"][what] = json.loads(output.splitlines()[-1])
        print(what, figures["growth"][what], flush=True)
    if options.json:
        write_log(options.json, "limits", {}, figures)


if __name__ == "__main__":
    main()
