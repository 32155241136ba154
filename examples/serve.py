"""Translates standard input, one sentence a line, with an exported model.

    python serve.py SAVED_MODEL < text

Needs tensorflow and tensorflow-text, and nothing of this project.
"""

import sys

import tensorflow as tf
import tensorflow_text  # noqa: F401  registers the tokenizer's operations

serve = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
lines = [line.rstrip("\n") for line in sys.stdin]
found = serve(sources=tf.constant(lines))
for line, translation, score in zip(lines, found["translations"].numpy(), found["scores"].numpy(), strict=True):
    print(f"{line}\n  -> {translation.decode()}  (cost {score:.3f})")
