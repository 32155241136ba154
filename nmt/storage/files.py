"""Writes files atomically, locks directories, and reads files of untrusted directories."""

import contextlib
import fcntl
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

from filelock import FileLock, Timeout

from ..errors import UserError

ORIGIN = "origin.json"  # of an imported model: its licence, and where it is from
_LOCK = "lock"
_LONGEST = 1 << 24  # bytes of a file of JSON in a model directory
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{8}\.part")


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike, mode: str = "w") -> Iterator[IO]:
    """Opens a temporary file, which replaces `path` when it is complete and synced. Text is UTF-8
    with `\\n` line ends.

    A file that exists keeps its permissions.

    Raises:
        UserError: The file cannot be written. Then `path` stays as it was, and the temporary file
            is removed.
    """
    target = Path(os.path.realpath(path))  # replace the file behind a symbolic link, not the link
    temporary = temporary_path(target)
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with temporary.open(mode.replace("w", "x"), **text) as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # tells _remove_abandoned that the file is in use
            if target.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        _sync(target.parent)
    except OSError as error:
        name = error.filename and str(error.filename)
        if name not in (None, *map(str, (temporary, target, target.parent))):
            raise  # another file, in the caller's block
        raise UserError(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_directory(path: Path) -> Iterator[Path]:
    """Makes a temporary directory and yields it. It is renamed to `path` when the block succeeds
    and all is synced.

    If the block fails, nothing is left, not even the parents of `path` that were missing.
    """
    if path.exists():
        raise UserError(f"{path} exists already; remove it or give another path")
    missing = [parent for parent in path.parents if not parent.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_abandoned(path.parent.iterdir())
    temporary = temporary_path(path)
    temporary.mkdir()
    try:
        with _opened(temporary) as descriptor:
            with contextlib.suppress(OSError):  # as on NFS, which locks no directory
                fcntl.flock(descriptor, fcntl.LOCK_EX)  # tells _remove_abandoned that it is in use
            yield temporary
            for each in [*temporary.rglob("*"), temporary]:
                _sync(each)
            temporary.rename(path)
        _sync(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        for parent in missing:
            with contextlib.suppress(OSError):  # it is not empty
                parent.rmdir()


def temporary_path(path: Path) -> Path:
    """Returns an unused path in the same directory, to be renamed to `path` when complete."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")


@contextlib.contextmanager
def open_inside(path: Path, directory: Path) -> Iterator[BinaryIO]:
    """Opens a regular file of an untrusted directory; raises FileNotFoundError if it is missing."""
    try:
        with path_inside(path, directory).open("rb") as file:
            yield file
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None


def path_inside(path: Path, directory: Path) -> Path:
    """Returns the path of an entry of a directory that may come from an untrusted source."""
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(directory)):
        raise UserError(
            f"{path} is a link out of {directory}; put what it points to there, or give another "
            "directory"
        )
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UserError(f"{path} is not a regular file; remove or replace it")
    return path


def read_inside(path: Path, directory: Path, most: int = 1 << 26) -> bytes:
    """Returns the content of a file, as `open_inside` opens it."""
    with open_inside(path, directory) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise UserError(
            f"{path} has more than {most} bytes, which no such file needs; copy the directory again"
        )
    return content


def read_json(path: str | os.PathLike, directory: Path | None = None) -> dict[str, Any]:
    """Reads the JSON object in a file, which may be untrusted if it is in `directory`."""
    path = Path(path)
    try:
        content = read_inside(path, directory, _LONGEST) if directory else path.read_bytes()
        found = json.loads(content.decode("utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} must hold a JSON object")
    return found


def write_json(path: str | os.PathLike, content: Any, *, escaped: bool = True) -> None:
    """Writes a JSON file, by `atomic_write`."""
    with atomic_write(path) as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=escaped) + "\n")


@contextlib.contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Holds an exclusive lock on a directory, creating it if missing. The OS releases the lock when
    the process exits.

    Removes temporary files that killed processes left there and in its folders that are no links.
    On exit, removes the directory if this call created it and it is still empty.
    """
    created = not directory.exists()
    lock = FileLock(directory / _LOCK)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path_inside(directory / _LOCK, directory)  # an older filelock empties what a link names
        held = lock.acquire(blocking=False)
    except Timeout:
        raise UserError(
            f"{directory} is in use by another training; wait for it, or give another directory"
        ) from None
    except OSError as error:
        raise UserError(
            f"{directory} cannot be written to: {error.strerror}; give another directory"
        ) from None
    with held:
        try:
            _remove_abandoned(directory.rglob("*"))
            yield
        finally:
            with contextlib.suppress(OSError):
                if created and os.listdir(directory) == [_LOCK]:
                    (directory / _LOCK).unlink()
                    directory.rmdir()


def _remove_abandoned(paths: Iterable[Path]) -> None:
    """Removes those that are temporary files and directories and that no process is writing to."""
    for path in list(paths):
        # Opening a pipe would never end; what a link points to is not ours.
        is_ours = (path.is_file() or path.is_dir()) and not path.is_symlink()
        if is_ours and _TEMPORARY.fullmatch(path.name):
            with contextlib.suppress(OSError), _opened(path) as descriptor:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _sync(path: Path) -> None:
    """Makes the content of a file, or the names in a directory, survive a loss of power."""
    with _opened(path) as descriptor:
        os.fsync(descriptor)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
