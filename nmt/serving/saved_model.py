"""Exports a translator as a SavedModel, which runs with TensorFlow and tensorflow-text alone."""

import os
from pathlib import Path

import tensorflow as tf

from ..decoding.translator import Translator
from ..storage.files import atomic_directory


def save_translator(translator: Translator, to: str | os.PathLike) -> None:
    """Writes a SavedModel. Its default signature maps `sources` to `translations` and `scores`, all of shape `[batch]`.

    Raises:
        UserError: `to` exists already.
    """
    with atomic_directory(Path(to)) as directory:
        tf.saved_model.save(translator, str(directory), signatures=translator.serve)
