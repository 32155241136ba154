"""Files that are whole or not there, and directories that one process has to itself."""

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from .errors import UserError

_LOCK = "lock"
_PART = ".part"


@contextlib.contextmanager
def write_aside(path: str | os.PathLike, mode: str = "w") -> Iterator[IO]:
    """Opens a file that takes its name once all of it is on the disk; text is UTF-8 with `\\n` ends.

    Raises:
        UserError: It cannot be written. Then what had the name before is as it was, and nothing is left aside.
    """
    real = Path(os.path.realpath(path))  # a link stays one
    aside = beside(real)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with aside.open(mode.replace("w", "x"), **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(real)
        _sync_directory(real.parent)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


def beside(path: Path) -> Path:
    """Returns a name in the same directory that nobody has, for what is to take the name of `path` when it is whole."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}{_PART}")


@contextlib.contextmanager
def use_alone(directory: Path) -> Iterator[None]:
    """Makes a directory, if need be, and keeps others out of it. The kernel ends that when this process ends.

    What a process that was killed had begun to write is removed.

    Raises:
        UserError: Another process uses it, or it cannot be written to.
    """
    new = not directory.exists()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / _LOCK).open("a")
    except OSError as error:
        raise UserError(f"{directory} cannot be written to: {error.strerror}; give another directory") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"{directory} is in use by another training; wait for it, or give another directory"
            ) from None
        for left in directory.glob(f".*{_PART}"):
            left.unlink()
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                if new and os.listdir(directory) == [_LOCK]:  # nothing came of it
                    (directory / _LOCK).unlink()
                    directory.rmdir()


def _sync_directory(directory: Path) -> None:
    """Makes a new name in a directory last through a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
