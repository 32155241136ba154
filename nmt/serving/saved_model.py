"""A translator as a SavedModel, which TensorFlow and tensorflow-text serve without this project."""

import os
import shutil
from pathlib import Path

import tensorflow as tf

from ..decoding.translator import Translator
from ..errors import UserError
from ..storage.files import temporary_path


def save_translator(translator: Translator, to: str | os.PathLike) -> None:
    """Writes a SavedModel. Its default signature maps `sources` to `translations` and `scores`, all of shape `[batch]`.

    Raises:
        UserError: `to` exists already.
    """
    to = Path(to)
    if to.exists():
        raise UserError(f"{to} exists already; remove it, or export to another place")
    temporary = temporary_path(to)
    try:
        tf.saved_model.save(translator, str(temporary), signatures=translator.serve)
        temporary.rename(to)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
