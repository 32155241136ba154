"""Reads and writes files through Beam: local, or in an object store."""

import gzip
import io
import json
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, BinaryIO, TypeVar
from uuid import uuid4

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata
from apache_beam.io.filesystems import FileSystems

from ..errors import UserError

DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)  # what reading a damaged .gz file raises
# Beam would decompress too, but it takes a truncated file for a whole one.
_RAW = {"compression_type": CompressionTypes.UNCOMPRESSED}
_PAUSES = (0.5, 2.0)  # seconds before a call to a store is made again

T = TypeVar("T")


def attempt(path: str, function: Callable[[], T]) -> T:
    """Calls a function; again if it fails on an object of a store, which may be away for a moment.

    A file system of this machine is not asked again.
    """
    for pause in _PAUSES if "://" in path else ():
        with suppress(Exception):  # each store raises its own types
            return function()
        time.sleep(pause)
    return function()


@contextmanager
def usable(path: str, how: str = "read") -> Iterator[None]:
    """Raises a `UserError` for any error: each store raises its own types."""
    try:
        yield
    except Exception as error:
        raise UserError(f"{path} cannot be {how}: {' '.join(str(error).split())}") from None


def exists(path: str) -> bool:
    with usable(path):
        return attempt(path, lambda: FileSystems.exists(path))


def find(pattern: str) -> list[FileMetadata]:
    """Returns the files that a pattern names, in the order of their names."""
    with usable(pattern):
        matched = attempt(pattern, lambda: FileSystems.match([_from_root(pattern)]))
        return sorted(matched[0].metadata_list, key=lambda each: each.path)


def state(file: FileMetadata) -> str:
    """Returns what stands for the content of a file: its size and when it was written."""
    return f"{file.size_in_bytes}-{file.last_updated_in_seconds:.6f}"


def matching(pattern: str, paths: list[str]) -> list[str]:
    """Returns the paths of files that a pattern would name if they were there."""
    files = [FileMetadata(path, 0) for path in paths]
    matched = FileSystems.get_filesystem(pattern).match_files(files, _from_root(pattern))
    return [each.path for each in matched]


def absolute(path: str) -> str:
    """Returns an absolute path without links: workers have another working directory."""
    return path.rstrip("/") if "://" in path else os.path.realpath(path)


def _from_root(pattern: str) -> str:
    """Returns the absolute path of a pattern.

    The file itself may be a link, which gives the translation its name.
    """
    if "://" in pattern:
        return absolute(pattern)
    folder, name = os.path.split(pattern.rstrip("/") or pattern)
    return os.path.join(absolute(folder), name or ".")


def plain(path: str) -> str:
    """Returns a path, unless Beam would read it as a pattern, also where it removes a file."""
    if set(path) & set("*?["):
        raise UserError(
            f"{path} has one of *?[ in its name, which Beam reads as a pattern; rename it"
        )
    return path


@contextmanager
def local(folder: str) -> Iterator[str]:
    """Yields a local copy of a folder: TensorFlow itself reads no object store."""
    if "://" not in folder:
        yield folder
        return
    with tempfile.TemporaryDirectory() as copy:
        for path in (each.path for each in find(f"{folder}/**")):
            target = copy + path.removeprefix(folder)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with usable(path), _open(path) as source, open(target, "wb") as file:
                shutil.copyfileobj(source, file)
        yield copy


@contextmanager
def open_text(path: str) -> Iterator[BinaryIO]:
    """Opens a file, decompressed if its name ends in `.gz`."""
    with (
        _open(path) as raw,
        gzip.open(raw) if path.endswith(".gz") else nullcontext(raw) as file,
    ):
        yield file


def _open(path: str) -> BinaryIO:
    return attempt(path, lambda: FileSystems.open(path, **_RAW))


@contextmanager
def write_whole(path: str, aside: str) -> Iterator[BinaryIO]:
    """Opens a temporary file in `aside`, which is renamed to `path` when complete, compressed if
    that ends in `.gz`.

    If `path` is there by then, it stays: another attempt of the same step has written it.
    """
    temporary = f"{aside}/{uuid4().hex}.part"

    def rename() -> None:
        if not FileSystems.exists(path):
            FileSystems.rename([temporary], [path])

    try:
        with attempt(temporary, lambda: FileSystems.create(temporary, **_RAW)) as raw:
            # Without a time, each attempt writes the same bytes.
            with (
                gzip.GzipFile("", "wb", fileobj=raw, mtime=0)
                if path.endswith(".gz")
                else nullcontext(raw) as file
            ):
                yield file
            with suppress(
                AttributeError, io.UnsupportedOperation
            ):  # object stores have nothing to sync
                raw.flush()
                os.fsync(raw.fileno())
        with suppress(OSError):  # the folder exists, or renaming raises the error
            FileSystems.mkdirs(os.path.dirname(path))
        try:
            attempt(path, rename)
        except BeamIOError:  # some stores replace nothing, and another attempt was first
            if not exists(path):
                raise
    finally:
        remove(temporary)


def remove(path: str) -> None:
    """Removes a file or, with a slash at the end, a folder with all that is in it.

    Does nothing if there is none.
    """
    plain_path = path if "://" in path else path.rstrip("/")
    with suppress(Exception):  # each store raises its own types
        if path.endswith("/") or exists(path):
            attempt(path, lambda: FileSystems.delete([plain_path]))


def clear(path: str) -> None:
    """Removes a file, and raises a `UserError` if it stays."""
    remove(path)
    if exists(path):
        raise UserError(f"{path} cannot be removed; remove it, and run the same command again")


def read_json(path: str) -> Any:
    with open_text(path) as file:
        return json.loads(file.read())


def write_json(path: str, aside: str, value: Any) -> None:
    with write_whole(path, aside) as file:
        file.write(json.dumps(value, indent=2).encode() + b"\n")
