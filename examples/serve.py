"""Translates standard input, one sentence a line, with an exported model.

    python serve.py SAVED_MODEL < text

Needs tensorflow and tensorflow-text, but not this project. `--without MODULE ...` makes it fail if
one of these modules can be imported.
"""

import argparse
import importlib.util
import os
import signal
import sys
from pathlib import Path

BATCH = 128  # Lines translated at once; more take more memory.


def load_tensorflow():
    """Imports TensorFlow and the operations of the tokenizer, without their messages."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    terminal = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        import tensorflow
        import tensorflow_text  # noqa: F401

        tensorflow.config.list_physical_devices()  # warns if there is no GPU
    finally:
        os.dup2(terminal, 2)
    return tensorflow


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "saved_model", metavar="SAVED_MODEL", help="folder that `python -m nmt export` wrote"
    )
    parser.add_argument(
        "--without", nargs="*", default=[], metavar="MODULE", help="modules that must be missing"
    )
    arguments = parser.parse_args()
    if present := [name for name in arguments.without if importlib.util.find_spec(name)]:
        return f"{', '.join(present)} can be imported"
    if not Path(arguments.saved_model, "saved_model.pb").is_file():
        return f"{arguments.saved_model} has no saved_model.pb; give what `nmt export` wrote"

    tf = load_tensorflow()
    serve = tf.saved_model.load(arguments.saved_model).signatures["serving_default"]
    lines = [line.rstrip(b"\r\n") for line in sys.stdin.buffer]
    for start in range(0, len(lines), BATCH):
        found = serve(sources=tf.constant(lines[start : start + BATCH]))
        for translation in found["translations"].numpy():
            print(translation.decode(), flush=True)
    return None


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it without a traceback
    if error := main():
        print(f"serve.py: {error}", file=sys.stderr)
        sys.exit(2)
