"""Files that are whole or not there, and directories that one process has to itself."""

import contextlib
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from ..errors import UserError

_LOCK = "lock"
_BESIDE = re.compile(r"\..+\.[0-9a-f]{8}\.part")


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
            fcntl.flock(file, fcntl.LOCK_EX)  # as long as it is written to
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
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


@contextlib.contextmanager
def use_alone(directory: Path) -> Iterator[None]:
    """Makes a directory, if need be, and keeps others out of it. The kernel ends that when this process ends.

    Files that a process was writing there when it was killed are removed.

    Raises:
        UserError: Another process uses it, or it cannot be written to.
    """
    new = not directory.exists()
    in_use = UserError(f"{directory} is in use by another training; wait for it, or give another directory")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        lock = (directory / _LOCK).open("a")
    except OSError as error:
        raise UserError(f"{directory} cannot be written to: {error.strerror}; give another directory") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise in_use from None
        if not os.fstat(lock.fileno()).st_nlink:  # another has just removed it, as nothing came of its training
            raise in_use
        _remove_abandoned(directory)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                if new and os.listdir(directory) == [_LOCK]:  # nothing came of it
                    (directory / _LOCK).unlink()
                    directory.rmdir()


def _remove_abandoned(directory: Path) -> None:
    """Removes the files that nobody writes any more, and that have not got their names."""
    for left in directory.iterdir():
        if _BESIDE.fullmatch(left.name):
            with contextlib.suppress(OSError), left.open() as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()


def _sync_directory(directory: Path) -> None:
    """Makes a new name in a directory last through a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
