"""A cache of arrays that take long to compute, and of the digests of files.

Everything in it can be computed again: a file that is missing or damaged is made anew, and all may be deleted. Several
processes may use it at a time. What one of them computes, the others wait for.
"""

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from filelock import FileLock, Timeout

from ..errors import UserError
from .files import atomic_write, remove_abandoned

_WAIT = 5  # seconds until a process says that it waits for another one
_FRESH = 2 * 10**9  # nanoseconds in which a file may change again without a change of its times
_PIECE = 1 << 20  # bytes
_ABANDONED = 3600  # seconds without writing after which a temporary file may be removed
_FORMAT = "1"  # version of the file format; each version has its own directory
_WARNED: set[Path] = set()  # directories that this process has reported as not writable


class FileState(NamedTuple):
    """What changes when a file is written or replaced."""

    size: int
    modified: int  # nanoseconds
    changed: int  # nanoseconds; also when the file is renamed or its permissions change
    inode: int

    @classmethod
    def of(cls, path: Path | int) -> "FileState":
        """Returns the present state of a file, given by its path or descriptor."""
        status = os.stat(path)
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)

    def same_content(self, other: "FileState") -> bool:
        """Returns whether they differ at most in when the file was renamed or its permissions changed."""
        return self._replace(changed=0) == other._replace(changed=0)

    @property
    def settled(self) -> bool:
        """False just after a change: the next change may not alter the times."""
        return time.time_ns() - max(self.modified, self.changed) > _FRESH


class Cache:
    """Arrays and digests in the files of a directory. What cannot be written there is made again the next time.

    Args:
        directory: Where they are. It must exist.
        temporary: Whether they are removed when this process exits.

    Attributes:
        directory: Where they are.
        temporary: Whether they are removed when this process exits.
        complete: Whether all could be written so far.
    """

    def __init__(self, directory: Path, temporary: bool = False):
        self.directory, self.temporary, self.complete = directory, temporary, True
        remove_abandoned(directory, _ABANDONED)

    def array(self, name: str, make: Callable[[], np.ndarray]) -> np.ndarray:
        """Returns the array with this name, memory-mapped. If the cache has none, makes and keeps it."""
        found = self.load(name)
        if found is None:
            with self.lock(name):
                found = self.load(name)
                if found is None:
                    found = self.save(name, make())
        return found

    def load(self, name: str) -> np.ndarray | None:
        """Returns the array with this name, memory-mapped; `None` if there is none or its file is damaged."""
        path = self._path(name)
        try:
            with path.open("rb") as file:
                size, checksum = os.fstat(file.fileno()).st_size - 4, 0
                for start in range(0, size, _PIECE):
                    checksum = zlib.crc32(file.read(min(_PIECE, size - start)), checksum)
                if file.read() != checksum.to_bytes(4, "big"):
                    return None
            mapped = np.load(path, mmap_mode="r", allow_pickle=False)
            return np.asarray(mapped)  # a plain array reads single entries faster than np.memmap
        except (OSError, ValueError, EOFError):
            return None

    def save(self, name: str, array: np.ndarray) -> np.ndarray:
        """Writes an array and returns it memory-mapped, or as it is if the file cannot be written."""
        try:
            with atomic_write(self._path(name), "wb") as file:
                summed = _Summed(file)
                np.lib.format.write_array(summed, np.asarray(array, order="C"), allow_pickle=False)
                file.write(summed.checksum.to_bytes(4, "big"))
        except UserError as error:
            self._not_written(str(error))
            return array
        found = self.load(name)
        return array if found is None else found

    def digest(self, path: Path, read: Callable[[], str]) -> str:
        """Returns the digest of a file: the remembered one if the file has not changed since, or what `read` returns.

        Raises:
            UserError: The file changed while it was being read.
        """
        return self.digest_and_state(path, read)[0]

    def digest_and_state(self, path: Path, read: Callable[[], str]) -> tuple[str, FileState]:
        """Returns what `digest` does, and the state of the file that has this digest."""
        state = FileState.of(path)
        settled, known = state.settled, self._remembered(path, state)
        if known is None:
            known = read()
            if FileState.of(path) != state:
                raise changed_while_read(path)
            if settled:
                self.remember(path, known)
        return known, state

    def known_digest(self, path: Path) -> str | None:
        """Returns the digest that was remembered for a file; `None` if the file may have changed since."""
        return self._remembered(path, FileState.of(path)) if path.exists() else None

    def _remembered(self, path: Path, state: FileState) -> str | None:
        entry = self.load(f"file-{path_key(path)}")
        if entry is None:
            return None
        *remembered, digest = entry.tolist()
        return digest if remembered == [str(value) for value in state] else None

    def remember(self, path: Path, digest: str) -> None:
        """Remembers the digest of a file until the file changes."""
        self.save(f"file-{path_key(path)}", np.array([*map(str, FileState.of(path)), digest]))

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Keeps other processes and threads from computing the same. The OS releases it when the process exits.

        If the lock file cannot be written, every process computes the result itself.
        """
        lock = FileLock(self.directory / f"{name}.lock", mode=0o666)  # of any user
        try:
            lock.acquire(timeout=_WAIT)
        except Timeout:
            print(f"waiting for another process, which reads the same text ({lock.lock_file})", file=sys.stderr)
            lock.acquire()
        except OSError as error:
            self._not_written(f"{lock.lock_file} cannot be written: {error.strerror or error}")
        try:
            yield
        finally:
            lock.release()

    def _not_written(self, why: str) -> None:
        self.complete = False
        if self.directory not in _WARNED:
            _WARNED.add(self.directory)
            again = "the next start computes it again, unless NMT_TEXT_CACHE names another directory"
            print(f"warning: {why}; {again}", file=sys.stderr)

    def _path(self, name: str) -> Path:
        return self.directory / f"{name}.npy"


def open_cache() -> Cache:
    """Returns the cache in the user's cache directory. NMT_TEXT_CACHE names another directory, or is `off`.

    Without a directory that can be written to, the cache is a temporary directory, which this process removes at exit.
    """
    place = os.environ.get("NMT_TEXT_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache", "nmt-texts")
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: the user has no home
        if place != "off":
            directory = _subdirectory(Path(place).expanduser())
            if os.access(directory, os.W_OK):
                return Cache(directory)
    return Cache(_temporary(), temporary=True)


def _subdirectory(place: Path) -> Path:
    """Returns the directory of this format in `place`. It gets the permissions of `place`, so its users share it."""
    directory = place / _FORMAT
    place.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        directory.mkdir()
        directory.chmod(place.stat().st_mode & 0o7777)
    return directory


@functools.cache
def _temporary() -> Path:
    """Returns a directory that exists while this process runs."""
    directory = tempfile.mkdtemp(prefix="nmt-texts-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


class _Summed:
    """A file to write to that keeps the checksum of what is written."""

    def __init__(self, file):
        self._file, self.checksum = file, 0

    def write(self, data) -> int:
        self.checksum = zlib.crc32(data, self.checksum)
        return self._file.write(data)


def changed_while_read(path: Path) -> UserError:
    """Returns the error for a file that another process has written or replaced."""
    return UserError(f"{path} changed while it was being read; start again and leave the file alone")


def path_key(path: Path) -> str:
    """Returns a name for a path that may be part of a file name."""
    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]
