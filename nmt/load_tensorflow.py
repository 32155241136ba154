"""Imports TensorFlow without its messages about the machine, which no setting turns off."""

import contextlib
import os
from collections.abc import Iterator
from types import ModuleType


def load_tensorflow() -> ModuleType:
    """Imports TensorFlow, discards what it prints to standard error, and returns it."""
    # At level 2, TensorFlow prints a line for each program that it loads from the cache.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    with _silent_stderr():
        import tensorflow

        tensorflow.config.list_physical_devices()  # prints a warning if there is no GPU
    return tensorflow


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Discards standard error, also that of native code."""
    saved, devnull = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(devnull, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(devnull)
