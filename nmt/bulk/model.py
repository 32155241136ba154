"""An export that translates in a process of its own, so that a line that kills it does not kill the worker too."""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError, describe_end
from ..load_tensorflow import load_tensorflow
from ..text.long_lines import halve, join_pieces

_SPAWN = multiprocessing.get_context("spawn")  # TensorFlow does not survive a fork
_LONGEST = 200  # characters of a reason
_PLACES = ("Graph execution error", "Detected at node", "<stack traces", "[[")


@dataclass(frozen=True)
class Fault:
    """Takes the place of a line, or of its translation, and says why there is none, or none that is whole."""

    reason: str
    text: bytes = b""  # what there is of the translation


Translate = Callable[[Sequence[bytes]], list[bytes | Fault]]
_CUT = "its translation was cut at the limit of its length"
_LINE_FEED = Fault("its translation has a line feed")


class ModelError(Exception):
    """The model fails, or its process ended; the message is the reason."""


class LoadError(Exception):
    """The model cannot be loaded; the message is the reason."""


class Model:
    """An export in a process of its own. If a line kills that process, the next call starts another one.

    Args:
        path: Its folder.
        seconds: Longest time for it to be loaded, and to translate the lines of a call.
        local: Makes a context manager that returns a local folder with the files of `path`.

    Raises:
        UserError: It cannot be loaded, or it does not translate.
    """

    def __init__(self, path: str, seconds: float, local: Callable[[str], Any] = contextlib.nullcontext):
        self._path, self._seconds, self._local, self._process = path, seconds, local, None
        self._lock = threading.Lock()  # one call at a time, so that it is known which one kills the process
        try:
            self([b""])
        except Exception as error:
            self.close()
            raise UserError(f"{path} cannot be used: {error}") from None

    def __call__(self, lines: Sequence[bytes]) -> list[bytes | Fault]:
        """Returns the translation of each line, or a fault if the model cut it.

        Raises:
            ModelError: The model fails, or its process is killed; if there is only one line, twice.
            LoadError: It cannot be loaded again after its process was killed.
            TimeoutError: The model does not answer in time. Its process is killed.
        """
        with self._lock:
            try:
                return self._ask(lines)
            except ModelError:
                if self._process or len(lines) > 1:  # it still runs, so it was not killed
                    raise
                return self._ask(lines)  # something else may have killed it

    def close(self) -> str:
        """Ends the process and returns how it ended."""
        process, self._process = self._process, None
        if not process:
            return ""
        self._pipe.close()
        process.join(5)  # it ends by itself, unless it hangs
        process.kill()
        process.join()
        return describe_end(process.exitcode)

    def _ask(self, lines: Sequence[bytes]) -> list[bytes | Fault]:
        if not self._process:
            self._start()
        with contextlib.suppress(OSError):  # the process ended, as its answer says
            self._pipe.send(lines)
        return self._answer()

    def _start(self) -> None:
        for is_last in (False, True):
            self._pipe, other = _SPAWN.Pipe()
            with self._local(self._path) as folder:
                self._process = _SPAWN.Process(target=_serve, args=(folder, other), daemon=True)
                self._process.start()
                other.close()  # else this end would not notice the end of the process
                try:
                    self._answer()
                    return
                except ModelError as error:
                    was_killed = not self._process
                    self.close()
                    if is_last or not was_killed:
                        raise LoadError(str(error)) from None

    def _answer(self) -> list[bytes]:
        try:
            texts, error = self._pipe.recv() if self._pipe.poll(self._seconds) else (None, None)
        except (EOFError, OSError):  # the process ended, perhaps in the middle of an answer
            raise ModelError(f"its process {self.close()}") from None
        if texts is None:
            self.close()
            limit = f"the model did not answer within {self._seconds:g} seconds"
            raise TimeoutError(f"{limit}; give a larger --model_timeout, or fewer --piece_lines")
        if error:
            raise ModelError(error)
        return texts


def _serve(folder: str, pipe: Connection) -> None:
    """Loads an export, says that it is loaded, and answers batches of lines; ends with the worker, also in a batch."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the worker
    with contextlib.suppress(OSError):  # only Linux has it
        Path("/proc/self/oom_score_adj").write_text("1000")  # if memory runs out, the worker is not the one to end
    worker = multiprocessing.parent_process()
    threading.Thread(target=lambda: (worker.join(), os._exit(0)), daemon=True).start()
    translate, lines = None, []
    with contextlib.suppress(EOFError, ConnectionError):  # the worker closed the pipe
        while True:
            try:
                translate = translate or _load(folder)
                pipe.send((translate(lines) if lines else [], None))
            except Exception as error:  # whatever a damaged export or line makes TensorFlow raise
                pipe.send(([], reason_of(error)))
            lines = pipe.recv()


def _load(folder: str) -> Translate:
    tf = load_tensorflow(translates=True)
    import tensorflow_text  # noqa: F401  registers the operations of the tokenizer

    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, enable=True)  # several processes load the export
    loaded = tf.saved_model.load(folder)

    def translate(lines: Sequence[bytes]) -> list[bytes | Fault]:
        found = loaded.signatures["serving_default"](sources=tf.constant(lines, tf.string))
        texts = found["translations"].numpy().tolist()
        if len(texts) != len(lines):
            raise ValueError(f"the model returns {len(texts)} translations of {len(lines)} lines")
        no = np.zeros(len(lines), bool)
        source_cut, cut = (found[name].numpy() if name in found else no for name in ("source_cut", "translation_cut"))
        results = [Fault(_CUT, text) if is_cut else text for text, is_cut in zip(texts, cut, strict=True)]
        for i in np.flatnonzero(source_cut):  # the model has read only the beginning
            if len(lines[i]) > 1:
                halves = halve(lines[i])
                results[i] = _joined(translate(halves), halves)
        return results

    return translate


def _joined(results: list[bytes | Fault], pieces: list[bytes]) -> bytes | Fault:
    """Returns the translation of a line from those of its pieces, or a fault if one of them has one."""
    text = join_pieces([text_of(each).decode(errors="surrogateescape") for each in results], pieces)
    text = text.encode(errors="surrogateescape")
    return next((Fault(each.reason, text) for each in results if isinstance(each, Fault)), text)


def text_of(result: bytes | Fault) -> bytes:
    """Returns the translation, or what there is of it."""
    return result.text if isinstance(result, Fault) else result


def translate_lines(model: Translate, lines: Sequence[bytes | Fault]) -> list[bytes | Fault]:
    """Returns the translation of each line, or a fault.

    If the model fails, the lines are split in halves until each line that it fails on is alone.

    Raises:
        ModelError: The model fails on an empty line too, so the fault is not in the lines.
        LoadError: The model cannot be loaded again. No line is blamed.
        TimeoutError: The model does not answer in time. No line is blamed: a slow machine may be the reason.
    """
    found = iter(_isolate(model, [line for line in lines if isinstance(line, bytes)]))
    return [line if isinstance(line, Fault) else next(found) for line in lines]


def _isolate(model: Translate, lines: Sequence[bytes]) -> list[bytes | Fault]:
    if not lines:
        return []
    try:
        return [_LINE_FEED if b"\n" in text_of(each) else each for each in model(lines)]
    except ModelError as error:
        if len(lines) == 1:
            model([b""])
            return [Fault(f"the model fails: {error}")]
    half = len(lines) // 2
    return _isolate(model, lines[:half]) + _isolate(model, lines[half:])


def reason_of(error: Exception) -> str:
    """Returns type and message of an error, in one line. TensorFlow puts the place in the graph before its message."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = [line for line in lines if line and not line.startswith(_PLACES)] or lines or [""]
    return f"{type(error).__name__}: {said[0]}"[:_LONGEST]
