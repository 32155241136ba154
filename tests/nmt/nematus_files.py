"""Files that Nematus wrote, from `tests/data/nematus`, and checkpoints in its format made from
them."""

import json
import signal
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import tensorflow as tf

from nmt.__main__ import main
from nmt.training.interruption import restored_handlers

DATA = Path(__file__).parents[1] / "data" / "nematus"


def run(*arguments):
    """Runs a command. The handlers of signals stay as they were, also for fixtures of a module."""
    words = ["nmt", *map(str, arguments)]
    handlers = restored_handlers(signal.SIGINT, signal.SIGTERM)
    with handlers, mock.patch.object(sys, "argv", words):
        main()


def read_arrays(name):
    with np.load(DATA / f"{name}.npz") as file:
        return dict(file)


def write_checkpoint(path, arrays, options):
    """Writes a checkpoint in the format of TensorFlow 1.

    Its options name the dictionaries in `DATA`.
    """
    options = {
        **options,
        "dictionaries": [str(DATA / Path(name).name) for name in options["dictionaries"]],
    }
    path.with_name(f"{path.name}.json").write_text(json.dumps(options), encoding="utf-8")
    names = sorted(arrays)
    tensors = [tf.constant(arrays[name]) for name in names]
    tf.raw_ops.SaveV2(
        prefix=str(path), tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors
    )
    return path


def read_options(name):
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def write_options(path, *names, **changes):
    """Writes the options of `tiny_none` without some names and with some changes."""
    options = {**read_options("tiny_none"), **changes}
    path.write_text(json.dumps({k: v for k, v in options.items() if k not in names}))
    return path
