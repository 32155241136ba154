"""Files as Beam reads and writes them: local, or in an object store."""

import contextlib
import gzip
import io
import json
import os
import re
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO
from uuid import uuid4

from apache_beam.io.filesystem import BeamIOError, CompressionTypes, FileMetadata
from apache_beam.io.filesystems import FileSystems

from ..errors import UserError

DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)  # what reading a damaged .gz file raises
# Beam would decompress too, but it takes a truncated file for a whole one.
_RAW = {"compression_type": CompressionTypes.UNCOMPRESSED}


def exists(path: str) -> bool:
    """Returns whether there is a file.

    Raises:
        UserError: Its store cannot be read.
    """
    try:
        return FileSystems.exists(path)
    except Exception as error:  # each store raises its own types
        raise UserError(f"{path} cannot be read: {' '.join(str(error).split())}") from None


def find(pattern: str) -> list[FileMetadata]:
    """Returns the files that a pattern names, in the order of their names.

    Raises:
        UserError: The files cannot be listed.
    """
    try:
        return sorted(FileSystems.match([absolute(pattern)])[0].metadata_list, key=lambda each: each.path)
    except (BeamIOError, OSError, ValueError) as error:  # ValueError: a package for this kind of path is missing
        raise UserError(f"{pattern} cannot be read: {' '.join(str(error).split())}") from None


def state_of(file: FileMetadata) -> str:
    """Returns what stands for the content of a file: its size and when it was written."""
    return f"{file.size_in_bytes}-{file.last_updated_in_seconds:.6f}"


def state(path: str) -> str:
    """Returns what stands for the content of the file at a path; an empty string if there is none."""
    found = find(path)
    return state_of(found[0]) if found else ""


def matches(pattern: str, path: str) -> bool:
    """Returns whether a file at a path would be among those that a pattern names."""
    system = FileSystems.get_filesystem(pattern)
    return re.fullmatch(system.translate_pattern(absolute(pattern)), absolute(path)) is not None


def absolute(path: str) -> str:
    """Returns a path that does not depend on the working directory, which workers do not share."""
    return path if "://" in path else os.path.abspath(path)


def require_no_pattern(path: str) -> None:
    """Raises a `UserError` if Beam would read a path as a pattern, also where it removes a file."""
    if set(path) & set("*?["):
        raise UserError(f"{path} has one of *?[ in its name, which Beam reads as a pattern; rename it")


def folder(path: str) -> str:
    """Returns the path of a folder, absolute and without a slash at the end.

    Raises:
        UserError: Beam would read it as a pattern.
    """
    require_no_pattern(path)
    return absolute(path.rstrip("/") or path)


@contextlib.contextmanager
def open_text(path: str) -> Iterator[BinaryIO]:
    """Opens a file, decompressed if its name ends in `.gz`."""
    with FileSystems.open(path, **_RAW) as raw:
        if path.endswith(".gz"):
            with gzip.open(raw) as file:
                yield file
        else:
            yield raw


@contextlib.contextmanager
def write_whole(path: str, aside: str) -> Iterator[BinaryIO]:
    """Opens a temporary file, which is renamed to `path` when it is complete. It is compressed if `path` ends in `.gz`.

    Args:
        path: The file to write. Its folder exists.
        aside: Folder of the temporary file in the same file system.
    """
    temporary = f"{aside}/{uuid4().hex}.part"
    try:
        with FileSystems.create(temporary, **_RAW) as raw:
            if path.endswith(".gz"):
                with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:  # the same bytes at every attempt
                    yield file
            else:
                yield raw
            _sync(raw)
        _rename(temporary, path)
    except BaseException:
        with contextlib.suppress(Exception):
            FileSystems.delete([temporary])
        raise


def make_folder(path: str) -> None:
    """Creates a folder if it is missing; object stores have none."""
    with contextlib.suppress(OSError):  # it exists, or writing the first file will raise the error
        FileSystems.mkdirs(path)


def remove(path: str, is_folder: bool = False) -> None:
    """Removes a file, or a folder with all that is in it. Does nothing if there is none."""
    with contextlib.suppress(OSError):
        FileSystems.delete([f"{path}/" if is_folder and "://" in path else path])


def read_json(path: str) -> Any:
    with open_text(path) as file:
        return json.loads(file.read())


def write_json(path: str, aside: str, value: Any) -> None:
    with write_whole(path, aside) as file:
        file.write(json.dumps(value, indent=2).encode() + b"\n")


def _sync(file: BinaryIO) -> None:
    with contextlib.suppress(AttributeError, io.UnsupportedOperation):  # object stores have nothing to sync
        descriptor = file.fileno()
        file.flush()
        os.fsync(descriptor)


def _rename(temporary: str, path: str) -> None:
    """Renames a file. Some stores do not replace an existing file; then the file of an earlier attempt stays."""
    try:
        FileSystems.rename([temporary], [path])
    except BeamIOError:
        if not exists(path):
            raise
        FileSystems.delete([temporary])
