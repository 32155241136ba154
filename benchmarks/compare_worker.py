"""Runs what benchmarks/compare.py times within a process: the package, and an exported model.

    python benchmarks/compare_worker.py CHECKOUT

Uses what CHECKOUT's `rmsnorm_tf` publishes. Reads a task a line from standard input, in JSON, and
answers with the seconds of a turn. The first turn of a task prepares it.
"""

import functools
import importlib
import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from runner import answer, repeats_of, turn


def layer_call(shape, **given):
    """Returns a call of the forward pass of a layer, or of both passes."""
    from layer import OURS, call

    return call(OURS, tuple(shape), **given)


def fit_call(units, mode):
    """Returns a call of a step of `fit`."""
    from fit import step

    from rmsnorm_tf import RMSNormalization

    return step(RMSNormalization, units, mode)


def saved_model_call(exports, lines):
    """Returns a call that translates lines with the model that the checkout exported."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401  registers the operations of the tokenizer

    loaded = tf.saved_model.load(os.path.join(exports, os.path.basename(sys.argv[1])))
    serve = loaded.signatures["serving_default"]
    sources = tf.constant(lines)
    return lambda: serve(sources=sources)["translations"].numpy()


KINDS = {"layer": layer_call, "fit": fit_call, "saved model": saved_model_call}


@functools.cache
def prepared(kind, arguments):
    """Returns the call of a task and how often to repeat it in a turn."""
    call = KINDS[kind](**json.loads(arguments))
    repeats = repeats_of(call, seconds_per_turn=0.05)
    turn(call, repeats)
    return call, repeats


def seconds(task):
    """Returns the seconds of a turn, or an error: a commit may lack what is asked."""
    kind, arguments = task
    try:
        if kind == "import":
            return turn(lambda: importlib.import_module("rmsnorm_tf"), 1)
        return turn(*prepared(kind, json.dumps(arguments)))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    answer(seconds)
