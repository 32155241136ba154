"""Caches what takes long to compute: files that are made once, and the digests of other files.

All of it can be computed again: what is missing or cut off is made anew, and all may be deleted.
Several processes may use it at a time. What one of them computes, the others wait for.
"""

import atexit
import contextlib
import functools
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ..errors import UserError
from ..messages import log
from .files import atomic_directory, read_json, temporary_path, write_json

_WAIT = 5  # seconds until a process says that it waits for another one
_FRESH = 2 * 10**9  # nanoseconds in which a file may change again without a change of its times
_FORMAT = "4"  # version of the files; each version has its own directory
_RECORD = "record.json"


class Cache:
    """A directory of entries, folders of files with a record, and of digests of files elsewhere."""

    def __init__(self, directory: Path):
        self.directory = directory

    def entry(
        self, name: str, make: Callable[[Path], dict[str, Any]]
    ) -> tuple[Path, dict[str, Any]]:
        """Returns the folder with this name and its record, and makes it if it is missing or
        damaged.

        The name stands for all that the files depend on. `make` writes them, and returns the record
        in JSON types.
        """
        path = self.directory / name
        record = _read_record(path)
        if record is not None:
            return path, record
        with self._lock(name):
            record = _read_record(path)
            if record is None:
                with self._explained():
                    shutil.rmtree(path, ignore_errors=True)
                    if path.exists():  # another user's, who alone may remove its files
                        path.rename(temporary_path(path))
                    with atomic_directory(path) as new:
                        record = make(new)
                        sizes = {each.name: each.stat().st_size for each in new.iterdir()}
                        (new / _RECORD).write_text(json.dumps({"record": record, "sizes": sizes}))
                        for each in (new, *new.iterdir()):
                            self._share(each)
        return path, record

    def _share(self, path: Path) -> None:
        """Gives a file or folder the permissions of the cache, whose users share it."""
        path.chmod(self.directory.stat().st_mode & (0o7777 if path.is_dir() else 0o666))

    def digests(self, paths: Sequence[Path], digest: Callable[[Path], str]) -> list[str]:
        """Returns the digest of each file: the cached one, or a new one if the file has changed."""

        def cached_or_new(path: Path) -> str:
            state = _state(path)
            key = hashlib.sha256(json.dumps([os.path.realpath(path), *state]).encode())
            record = self.directory / f"digest-{key.hexdigest()}.json"
            found = _read_json(record).get("digest")
            if found is None:
                now = time.time_ns()
                found = digest(path)
                if _state(path) != state:
                    raise changed_while_read(path)
                if now - max(state[1:3]) > _FRESH:
                    with self._explained():
                        write_json(record, {"digest": found})
                        self._share(record)
            return found

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(cached_or_new, paths))

    @contextlib.contextmanager
    def _lock(self, name: str) -> Iterator[None]:
        """Keeps other processes and threads from computing the same.

        The OS releases it when the process exits.
        """
        lock = FileLock(self.directory / f"{name}.lock", mode=0o666)  # of any user
        with self._explained():
            try:
                held = lock.acquire(timeout=_WAIT)
            except Timeout:
                log.info(
                    f"waiting for another process, which reads the same text ({lock.lock_file})"
                )
                held = lock.acquire()
        with held:
            yield

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Names the directory in errors of writing. Those of files elsewhere pass."""
        try:
            yield
        except OSError as error:
            file = Path(os.fsdecode(error.filename or self.directory))
            if not file.is_relative_to(self.directory):
                raise
            raise UserError(
                f"the cache {self.directory} cannot be written: {error.strerror or error}; make "
                "room, or let NMT_TEXT_CACHE name another directory"
            ) from None


def open_cache() -> Cache:
    """Returns the cache in the user's cache directory. NMT_TEXT_CACHE names another directory, or
    is `off`.

    Without a directory that can be written to, the cache is a temporary directory, which this
    process removes at exit.
    """
    place = os.environ.get("NMT_TEXT_CACHE") or Path(
        os.environ.get("XDG_CACHE_HOME") or "~/.cache", "nmt-texts"
    )
    with contextlib.suppress(OSError, RuntimeError):  # RuntimeError: the user has no home
        if place != "off":
            directory = _subdirectory(Path(place).expanduser())
            if os.access(directory, os.W_OK):
                return Cache(directory)
    return Cache(_temporary())


def changed_while_read(path: Path) -> UserError:
    """Returns the error for a file that another process has written or replaced."""
    return UserError(
        f"{path} changed while it was being read; start again and leave the file alone"
    )


def _subdirectory(place: Path) -> Path:
    """Returns the directory of this format in `place`.

    It gets the permissions of `place`, so its users share it.
    """
    directory = place / _FORMAT
    place.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        directory.mkdir()
        directory.chmod(place.stat().st_mode & 0o7777)
    return directory


@functools.cache
def _temporary() -> Path:
    """Returns a directory that exists while this process runs."""
    atexit.register(remove_temporary)
    return Path(tempfile.mkdtemp(prefix="nmt-texts-"))


def remove_temporary() -> None:
    """Removes the temporary cache of this process, if there is one.

    An ordinary exit does this by itself.
    """
    if _temporary.cache_info().currsize:
        shutil.rmtree(_temporary(), ignore_errors=True)


def _state(path: Path) -> list[int]:
    """Returns what changes when a file is written or replaced: size, mtime, ctime and inode."""
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _read_json(path: Path) -> dict[str, Any]:
    """Returns the object in a file; an empty one if it is missing or damaged."""
    with contextlib.suppress(UserError):
        return read_json(path)
    return {}


def _read_record(path: Path) -> dict[str, Any] | None:
    """Returns the record of an entry, or `None` if it is missing or the size of a file is wrong."""
    content = _read_json(path / _RECORD)
    with contextlib.suppress(OSError, KeyError):
        found = {name: (path / name).stat().st_size for name in content["sizes"]}
        if found == content["sizes"]:
            return content["record"]
    return None
