"""Times ways to write the forward pass for XLA on a CPU, beside `torch.compile` and a copy, and prints a table.

    python benchmarks/forward.py --torch PYTHON --json FORWARD.json    # an interpreter that has PyTorch

Each way runs in a process that returns the memory of large arrays to the system, as glibc does by default, and in one
that keeps it. Ways of one process run in turn.
"""

import argparse
import json
import os
import subprocess
import sys

SHAPES = ["4096x1024", "2048x4096"]
KEEPING = {
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "268435456",
}
BLOCK, LANES, EPSILON = 64, 16, 1e-6


def ways_in_tensorflow(rows, size):
    """Returns compiled calls by name."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras
    import tensorflow as tf

    from rmsnorm_tf import rms_norm

    x, scale = tf.random.normal([rows, size]), tf.ones([size])

    def normalized(x, total):
        return x * tf.math.rsqrt(total / size + EPSILON) * scale

    def lanes(x):
        partial = tf.reduce_sum(tf.square(tf.reshape(x, [rows, size // LANES, LANES])), 1)
        return normalized(x, tf.reduce_sum(partial, 1, keepdims=True))

    def blocks_of_rows(x):
        blocks = tf.reshape(x, [rows // BLOCK, BLOCK, size])
        one = lambda block: normalized(block, tf.matmul(block * block, tf.ones([size, 1])))  # noqa: E731
        return tf.reshape(tf.map_fn(one, blocks), [rows, size])

    ways = {
        "copy, XLA": lambda x: x * 1.0000001,
        "rms_norm, XLA": lambda x: rms_norm(x, scale, fused=True),
        "keras.ops.rms_normalization, XLA": lambda x: keras.ops.rms_normalization(x, scale),
        "sums of squares in 16 lanes, XLA": lanes,
        "64 rows at a time in a loop, XLA": blocks_of_rows,
    }
    functions = {name: tf.function(way, jit_compile=True, autograph=False) for name, way in ways.items()}
    return {name: lambda f=function: f(x) for name, function in functions.items()}


def ways_in_torch(rows, size):
    """Returns compiled calls by name."""
    import torch

    x, scale = torch.randn(rows, size), torch.ones(size)
    norm = torch.compile(lambda x: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + EPSILON) * scale)
    copy = torch.compile(lambda x: x * 1.0000001)
    eager = torch.nn.RMSNorm(size, eps=EPSILON).requires_grad_(False)
    calls = {"copy, torch.compile": copy, "plain norm, torch.compile": norm, "torch.nn.RMSNorm, eager": eager}
    return {name: lambda f=function: f(x) for name, function in calls.items()}


def measured_in(python, library, shape, rounds, environment):
    """Returns the seconds of each way, measured in a process of its own."""
    command = [python, __file__, "--alone", library, "--shapes", shape, "--rounds", str(rounds)]
    found = subprocess.run(command, env=os.environ | environment, check=True, capture_output=True, text=True)
    return json.loads(found.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", default=SHAPES, metavar="ROWSxSIZE")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--torch", metavar="PYTHON", help="an interpreter that has PyTorch")
    parser.add_argument("--alone", choices=("tensorflow", "torch"), help=argparse.SUPPRESS)
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()

    from interleaved import seconds_of  # beside this script

    if options.alone:
        make = {"tensorflow": ways_in_tensorflow, "torch": ways_in_torch}[options.alone]
        [shape] = options.shapes
        print(json.dumps(seconds_of(make(*map(int, shape.split("x"))), options.rounds)))
        return

    from figures_log import write_log
    from tables import forward

    figures = {}
    for shape in options.shapes:
        for memory, environment in (("returned", {}), ("kept", KEEPING)):
            seconds = measured_in(sys.executable, "tensorflow", shape, options.rounds, environment)
            if options.torch:
                seconds |= measured_in(options.torch, "torch", shape, options.rounds, environment)
            figures[f"{shape}, memory {memory}"] = seconds
    for lines in forward({"figures": figures}):
        print("\n".join(lines))
    if options.json:
        write_log(options.json, "forward", {"rounds": options.rounds}, figures)


if __name__ == "__main__":
    main()
