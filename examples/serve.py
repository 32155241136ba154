"""Translates standard input, one sentence a line, with an exported model.

    python serve.py SAVED_MODEL < text

Needs tensorflow and tensorflow-text, and nothing of this project: `--without MODULE ...` makes sure that these modules
cannot be imported.
"""

import argparse
import importlib.util
import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the tokenizer's operations

parser = argparse.ArgumentParser()
parser.add_argument("saved_model")
parser.add_argument("--without", nargs="*", default=[], metavar="MODULE")
arguments = parser.parse_args()
if present := [name for name in arguments.without if importlib.util.find_spec(name)]:
    sys.exit(f"{', '.join(present)} can be imported here")

serve = tf.saved_model.load(arguments.saved_model).signatures["serving_default"]
lines = [line.rstrip(b"\r\n") for line in sys.stdin.buffer]
for first in range(0, len(lines), 80):  # a batch of all lines would take all memory
    found = serve(sources=tf.constant(lines[first : first + 80]))
    for translation in found["translations"].numpy():
        print(translation.decode(), flush=True)
