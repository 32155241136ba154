"""Imports TensorFlow quietly, and keeps malloc from returning freed memory."""

import contextlib
import ctypes
import gc
import json
import os
import platform
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

# Units of a model. A decoding step of a smaller one takes longer with oneDNN, because calling it
# costs more than the products. TensorFlow itself switches it on for newer processors only.
LARGE = 512


def load_tensorflow(models: Iterable[Path] | None = None) -> ModuleType:
    """Imports TensorFlow, discards what it prints to standard error, and returns it.

    Args:
        models: The models, directories or exports, of a process that translates. oneDNN is on
            if one of them is large, else off, unless the environment says otherwise.
    """
    _keep_freed_memory()
    if models is not None:
        switch = "1" if any(map(_is_large, models)) else "0"
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", switch)
    # At level 2, TensorFlow prints a line for each program that it loads from the cache.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    # What the imports make stays, so do not look for garbage in it, now or later.
    gc.disable()
    with _silent_stderr():
        import tensorflow

        tensorflow.config.list_physical_devices()  # prints a warning if there is no GPU
    gc.freeze()
    gc.enable()
    return tensorflow


def _is_large(model: Path) -> bool:
    """Returns whether a model is known to be large.

    What is wrong with it shows when it is loaded.
    """
    with contextlib.suppress(OSError, ValueError, LookupError, TypeError, RecursionError):
        if (model / "config.json").exists():
            return json.loads((model / "config.json").read_text("utf-8"))["state_size"] >= LARGE
        card = json.loads((model / "assets.extra" / "model.json").read_text("utf-8"))
        states = card["sizes"]["state"]
        return max(states if isinstance(states, list) else [states]) >= LARGE
    return False


def _keep_freed_memory() -> None:
    """Makes glibc keep the memory of large arrays that were freed.

    By default it returns them to the system, which hands out the next ones page by page, filled
    with zeros. That takes about a tenth of an update. The peak stays the same.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(-3, 2**30)  # M_MMAP_THRESHOLD of malloc.h
        libc.mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD
        libc.mallopt(-2, 2**28)  # M_TOP_PAD


@contextlib.contextmanager
def _silent_stderr() -> Iterator[None]:
    """Discards standard error, also that of native code."""
    saved = os.dup(2)
    devnull = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(devnull, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(devnull)
