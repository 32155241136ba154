"""Files that are whole or not there, and directories that one process has to itself."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from .errors import UserError

_LOCK = "lock"


@contextlib.contextmanager
def write_aside(path: str | os.PathLike, mode: str = "w") -> Iterator[IO]:
    """Opens a file that takes its name once all of it is on the disk; text is UTF-8 with `\\n` ends.

    Raises:
        UserError: It cannot be written. Then what had the name before is as it was, and nothing is left aside.
    """
    path = Path(path)
    aside = path.with_name(path.name + ".part")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with aside.open(mode, **text) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
        _sync_directory(path.parent)
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            aside.unlink(missing_ok=True)


@contextlib.contextmanager
def use_alone(directory: Path) -> Iterator[None]:
    """Makes a directory, if need be, and keeps others out of it. The kernel ends that when this process ends.

    Raises:
        UserError: Another process uses it, or it cannot be written to.
    """
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
        yield


def _sync_directory(directory: Path) -> None:
    """Makes a new name in a directory last through a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
