"""An export: a SavedModel that maps sentences to translations."""

import contextlib
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import UserError
from . import model_process, storage
from .isolation import HungError, ModelError, reason_of

_GRAPH = "saved_model.pb"


def require_export(path: str) -> None:
    """Checks that a folder has a SavedModel.

    Raises:
        UserError: It has none.
    """
    if not storage.exists(f"{path}/{_GRAPH}"):
        raise UserError(f"{path} has no {_GRAPH}; give a folder that `python -m nmt export` wrote")


def fingerprint(path: str) -> str:
    """Returns a digest of an export, without its `assets.extra`.

    The data of the variables are not read, because their index holds a checksum of each.
    """
    digest = hashlib.sha256()
    for each in _files(path):
        if each.startswith(("assets.extra/", "variables/variables.data")):
            continue
        with storage.open_text(f"{path}/{each}") as file:
            digest.update(f"{each}\n".encode() + hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


class Export:
    """An export that is loaded in a process of its own. If a line kills that process, the next call starts another one.

    Args:
        path: Its folder.
        seconds: Longest time for it to be loaded, and to translate the lines of a call.

    Raises:
        UserError: It cannot be loaded, or it does not translate.
    """

    def __init__(self, path: str, seconds: float):
        self._path, self._seconds, self._process = path, seconds, None
        self._lock = threading.Lock()  # one call at a time, so that it is known which one kills the process
        try:
            self([b""])
        except Exception as error:
            self.close()
            raise UserError(f"{path} cannot be used: {reason_of(error)}") from None

    def __call__(self, lines: Sequence[bytes]) -> list[bytes]:
        """Returns the translation of each line.

        Raises:
            ModelError: The model fails, or its process was killed; if there is only one line, twice.
            HungError: The model does not answer in time. Its process is killed.
        """
        with self._lock:
            try:
                return self._translate(lines)
            except _KilledError:
                if len(lines) > 1:
                    raise
                return self._translate(lines)  # something else may have killed it

    def close(self) -> None:
        """Ends the process."""
        if self._process:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
            self._process.wait()
            self._process = None

    def _translate(self, lines: Sequence[bytes]) -> list[bytes]:
        if not self._process:
            self._start()
        with contextlib.suppress(BrokenPipeError):  # the process was killed; reading its answer says so
            model_process.send(self._process.stdin, lines)
        return self._answer()

    def _start(self) -> None:
        """Starts the process and waits until it has loaded the export."""
        paths = [str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
        with _local(self._path) as folder:
            self._process = subprocess.Popen(
                [sys.executable, "-m", model_process.__name__, folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
            )
            try:
                self._answer()
            except BaseException:
                self.close()
                raise

    def _answer(self) -> list[bytes]:
        """Returns the strings of the next message of the process."""
        process = self._process
        hung = threading.Event()
        timer = threading.Timer(self._seconds, lambda: (hung.set(), process.kill()))
        timer.daemon = True
        timer.start()
        try:
            texts, error = model_process.receive(process.stdout)
        except EOFError:
            self._process, status = None, process.wait()
            if hung.is_set():
                raise HungError(
                    f"the model did not answer within {self._seconds:g} seconds; give a larger --model_timeout, "
                    "or fewer --piece_lines"
                ) from None
            raise _KilledError(f"its process {_end_of(status)}") from None
        finally:
            timer.cancel()
        if error:
            raise ModelError(error)
        return texts


class _KilledError(ModelError):
    """The process of the model ended."""


def _end_of(status: int) -> str:
    return f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


def _files(path: str) -> list[str]:
    """Returns the names of all files of a folder, relative to it."""
    return [each.path.removeprefix(path).lstrip("/\\") for each in storage.find(f"{path}/**")]


@contextlib.contextmanager
def _local(path: str) -> Iterator[str]:
    """Yields a local folder with the files of another one, because TensorFlow itself reads no object store."""
    if "://" not in path:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        for each in _files(path):
            target = os.path.join(folder, each)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with storage.open_text(f"{path}/{each}") as source, open(target, "wb") as copy:
                shutil.copyfileobj(source, copy)
        yield folder
