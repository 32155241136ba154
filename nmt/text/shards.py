"""Files of text: patterns that name them, and compressed ones."""

import glob
import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ..errors import UserError
from ..storage.cache import Cache, path_key
from ..storage.files import atomic_write

_PIECE = 1 << 20  # bytes
COMPRESSED = (".gz", ".zst")

Files = str | os.PathLike | Sequence[str | os.PathLike]  # files, or patterns such as `train-*.en.gz`


class MissingFile(UserError):
    """A file does not exist, or none matches a pattern."""


def find_shards(files: Files) -> list[list[Path]]:
    """Returns the files that each pattern names, in the order of their names. A file's own name is a pattern too.

    Raises:
        MissingFile: A pattern names no file.
        UserError: A file is not a regular file.
    """
    return [_matches(each) for each in as_list(files)]


def as_list(files: Files) -> list[str | os.PathLike]:
    """Returns files or patterns as a list, also if only one is given."""
    return [files] if isinstance(files, str | os.PathLike) else list(files)


def all_shards(files: Files) -> list[Path]:
    """Returns the files that all patterns name."""
    return [path for shards in find_shards(files) for path in shards]


def read_pieces(path: Path, size: int = _PIECE) -> Iterator[bytes]:
    """Yields the text in a file in pieces, decompressed if its name ends in `.gz` or `.zst`.

    Args:
        path: The file.
        size: How many bytes to read at a time.

    Raises:
        UserError: The file is damaged or truncated, or reading it needs another package.
    """
    lines = 0
    try:
        for piece in _READERS.get(path.suffix, _plain)(path, size):
            yield piece
            lines += piece.count(b"\n")
    except (EOFError, zlib.error, gzip.BadGzipFile, _Damaged) as error:
        raise UserError(f"{path} is damaged or cut off after line {lines}: {error}; copy it again") from None


def plain_file(path: Path, cache: Cache, read: Callable[[int], object] = lambda size: None) -> Path:
    """Returns a file with the text in `path`: itself, or if it is compressed, a copy that the cache keeps.

    Args:
        path: A file, which may be compressed.
        cache: Keeps the copy.
        read: Called with the number of bytes of each piece that was unpacked.

    Raises:
        UserError: `path` is damaged, or the copy cannot be written.
    """
    if path.suffix not in COMPRESSED:
        return path
    with cache.lock(f"unpacked-{path_key(path)}"):
        digest = cache.digest(path, lambda: _unpack(path, cache, read))
        if cache.known_digest(_copy(digest, cache)) != digest:
            _unpack(path, cache, read)
    return _copy(digest, cache)


def content_digest(path: Path, cache: Cache) -> str:
    """Returns the SHA-256 of the text in a file, decompressed."""
    path = plain_file(path, cache)
    return cache.digest(path, lambda: _digest(read_pieces(path)))


def _matches(pattern: str | os.PathLike) -> list[Path]:
    path = Path(pattern)
    if path.exists() or not glob.has_magic(str(pattern)):
        found = [path]
    else:
        found = [Path(each) for each in sorted(glob.glob(str(pattern), recursive=True))]
        if not found:
            raise MissingFile(f"no file matches {pattern}; give text files, and put a pattern in quotes")
    for each in found:
        if not each.exists():
            raise MissingFile(f"the text {each} does not exist; give a text file")
        if not each.is_file():
            raise UserError(f"the text {each} is not a regular file and cannot be read twice; give a text file")
    return found


def _unpack(path: Path, cache: Cache, read: Callable[[int], object]) -> str:
    """Copies the text in a compressed file into the cache and returns its digest."""
    unpacked = cache.directory / f"unpacked-{path_key(path)}"
    with atomic_write(unpacked, "wb") as file:
        digest = _digest(read_pieces(path), lambda piece: read(file.write(piece)))
    copy = _copy(digest, cache)
    if cache.known_digest(copy) == digest:
        unpacked.unlink()
    else:
        unpacked.replace(copy)
        cache.remember(copy, digest)
    return digest


def _copy(digest: str, cache: Cache) -> Path:
    return cache.directory / f"{digest}.txt"


def _digest(pieces: Iterator[bytes], consume: Callable[[bytes], object] = lambda piece: None) -> str:
    """Returns the SHA-256 of the concatenated pieces; each is also given to `consume`."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
        consume(piece)
    return digest.hexdigest()


class _Damaged(Exception):
    """What a reader raises for a damaged file."""


def _plain(path: Path, size: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(size):
            yield piece


def _gzip(path: Path, size: int) -> Iterator[bytes]:
    with gzip.open(path) as file:
        while piece := file.read(size):
            yield piece


def _zstandard(path: Path, size: int) -> Iterator[bytes]:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise UserError(f"{path} needs the package zstandard; run pip install -e '.[zstd]'") from None
    frame = None
    for data in _plain(path, size):
        while data:
            frame = frame or zstandard.ZstdDecompressor(max_window_size=2**31).decompressobj()
            try:
                piece = frame.decompress(data)
            except zstandard.ZstdError as error:
                raise _Damaged(error) from None
            if piece:
                yield piece
            data = b""
            if frame.eof:
                data, frame = frame.unused_data, None
    if frame:
        raise _Damaged("the compressed data end too early")


_READERS = {".gz": _gzip, ".zst": _zstandard}
