"""Times the compiled programs of the layer and of a model's gradient on a GPU, and prints tables.

    python benchmarks/gpu.py make --to build/gpu                            # needs TensorFlow and no GPU
    python benchmarks/gpu.py measure build/gpu --json build/gpu.json        # needs JAX on the GPU and no TensorFlow

A `tf.function(jit_compile=True)` is the same XLA program on every machine. So one machine with TensorFlow makes the
programs, and another measures them with JAX, in at most eight minutes. `make` writes, the most wanted first, the
gradient of a batch for the RNN at the sizes of the paper with each norm, and the layer, backward and forward, with
plain sums and with sums as matrix products (`RMSNORM_TF_SUMS`), beside Keras's layers and a copy, and the gradient for
a Transformer. `measure` runs the programs of a group in turn, the first one twice, to show the noise, and writes the
figures of each group when it has them. Inputs take turns to exceed the cache. "busy" is what the GPU computes during a
call, from JAX's profiler, without launches; "difference" is the largest relative difference of the outputs from
TensorFlow's on the CPU.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

SHAPES = ["4096x1024", "16384x8192", "80x1024", "80x256", "2048x4096", "16384x1024"]  # the most wanted first
DTYPES = ["float32", "bfloat16"]
SIZES = {"embedding_size": 512, "state_size": 1024, "vocabulary": 32000, "batch_size": 80}  # the paper's
SUMS = ["plain", "products"]  # how rmsnorm_tf writes sums


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    style = {"formatter_class": argparse.ArgumentDefaultsHelpFormatter}
    make = commands.add_parser("make", help="make the programs, where TensorFlow is", **style)
    make.add_argument("--to", type=Path, required=True, metavar="FOLDER", help="write the programs here")
    make.add_argument("--shapes", nargs="*", default=SHAPES, help="of the layer's input")
    make.add_argument("--dtypes", nargs="+", default=DTYPES, choices=DTYPES, help="of the layer's input")
    for name, default in SIZES.items():
        make.add_argument(f"--{name}", type=int, default=default, help="of the RNN")
    make.add_argument("--width", type=int, default=30, help="words in each sentence; 0 leaves out the RNN")
    make.add_argument("--sums", choices=SUMS, help=argparse.SUPPRESS)
    measuring = commands.add_parser("measure", help="measure them, where JAX is", **style)
    measuring.add_argument("folder", type=Path, help="what `make` wrote")
    measuring.add_argument("--json", type=Path, required=True, metavar="FILE", help="write the figures here")
    measuring.add_argument("--rounds", type=int, default=15, help="turns of every program")
    measuring.add_argument("--seconds", type=float, default=420, help="begin no further table after this time")
    return parser.parse_args(arguments)


def main():
    options = parse()
    if options.command == "make" and not options.sums:
        for sums in SUMS:  # in a process each, because rmsnorm_tf reads the choice once
            subprocess.run([sys.executable, *sys.argv, "--sums", sums], check=True)
    elif options.command == "make":
        os.environ["RMSNORM_TF_SUMS"] = options.sums
        from gpu_programs import make

        make(options)
    else:
        from gpu_measure import measure

        measure(options.folder, options.json, options.rounds, options.seconds)


if __name__ == "__main__":
    main()
