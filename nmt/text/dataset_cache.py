"""Caches the token ids of each line on disk, as memory-mapped arrays."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import sentencepiece
import tensorflow as tf
import tensorflow_text
from tqdm import tqdm

from ..concurrency import parallel_map
from ..storage.cache import Cache, changed_while_read
from .lines import content_digests, read_blocks, read_pieces
from .segmentation import VERSION
from .vocabulary import SentencePieceVocabulary, Vocabulary

# Maps lines, each with a line feed at its end, to the numbers of all lines, the count of each, and
# perhaps the hash of each.
Encoder = Callable[[bytes], tuple[np.ndarray, ...]]


class RaggedArray:
    """A row of numbers for each line of a text.

    Args:
        flat: The numbers of all rows.
        ends: 0, and the position in `flat` after each row.
        hashes: The hash of each line, or nothing; see `hash_lines`.
        starts: Number of the first line of each file, and of all lines.
    """

    def __init__(self, flat: np.ndarray, ends: np.ndarray, hashes: np.ndarray, starts: list[int]):
        self._flat = flat
        self._ends = ends
        self.hashes = hashes
        self.starts = starts

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, line: int) -> np.ndarray:
        return self._flat[self._ends[line] : self._ends[line + 1]]

    def lengths(self, lines: slice) -> np.ndarray:
        return np.diff(self._ends[lines.start : lines.stop + 1])


def token_ids(paths: Sequence[Path], vocabulary: Vocabulary, cache: Cache) -> RaggedArray:
    """Returns the token ids of each line of files, without the end."""
    dtype = np.uint16 if vocabulary.size <= 2**16 else np.int32

    def encode(block: tf.Tensor) -> tuple[tf.Tensor, ...]:
        lines = tf.strings.split(block[tf.newaxis], "\n").values
        ids = vocabulary.encode(lines)
        return tf.cast(ids.flat_values, dtype), ids.row_lengths(), hash_lines(lines)

    traced = tf.function(encode, input_signature=[tf.TensorSpec([], tf.string)], autograph=False)
    traced = traced.get_concrete_function()  # once, before the threads call it

    def encoder(block: bytes) -> tuple[np.ndarray, ...]:
        return tuple(found.numpy() for found in traced(tf.constant(block[:-1])))

    return _prepare("ids", paths, cache, encoder, dtype, (vocabulary.digest, vocabulary.size))


def hash_lines(lines: tf.Tensor) -> tf.Tensor:
    """Returns a 64-bit hash of each line; chance makes two lines equal once in 10**18 pairs."""
    return tf.strings.to_hash_bucket_fast(lines, 2**63 - 1)


def raw_lines(paths: Sequence[Path], cache: Cache) -> RaggedArray:
    """Returns the bytes of each line of files, for texts that are segmented anew each time."""

    def encoder(block: bytes) -> tuple[np.ndarray, ...]:
        flat = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(flat == ord("\n"))
        return flat[flat != ord("\n")], np.diff(ends, prepend=-1) - 1

    return _prepare("lines", paths, cache, encoder, np.uint8)


def drawn_lengths(
    paths: Sequence[Path],
    vocabulary: SentencePieceVocabulary,
    alpha: float,
    seed: Sequence[int],
    cache: Cache,
) -> RaggedArray:
    """Returns rows with the lengths of the lines in one random segmentation."""

    def encoder(block: bytes) -> tuple[np.ndarray, ...]:
        rows = vocabulary.sample(block[:-1].split(b"\n"), alpha, seed, 2**31 - 1)
        return np.zeros(0, np.uint8), np.array([len(row) for row in rows])

    depends_on = (VERSION, vocabulary.digest, alpha, *seed)
    return _prepare("drawn", paths, cache, encoder, np.uint8, depends_on)


def _prepare(
    kind: str,
    paths: Sequence[Path],
    cache: Cache,
    encoder: Encoder,
    dtype: type,
    depends_on: Sequence[object] = (),
) -> RaggedArray:
    """Returns the rows of files, cached under their digests and what they depend on."""
    digests = content_digests(paths, cache)
    versions = tf.__version__, tensorflow_text.__version__, sentencepiece.__version__
    key = hashlib.sha256(repr((digests, *depends_on, *versions)).encode()).hexdigest()[:32]

    def blocks(bar: tqdm) -> Iterator[tuple[int, bytes]]:
        for shard, (path, digest) in enumerate(zip(paths, digests, strict=True)):
            for block in _unchanged_blocks(path, digest, bar):
                yield shard, block

    def make(folder: Path) -> dict[str, list[int]]:
        is_compressed = any(path.suffix in (".gz", ".zst") for path in paths)
        bar = tqdm(
            desc=f"reading {paths[0].name}",
            total=None if is_compressed else sum(path.stat().st_size for path in paths),
            delay=5,
            leave=False,
            unit="B",
            unit_scale=True,
        )
        counts = np.zeros(len(paths) + 1, np.int64)
        total = 0
        with (
            (folder / "flat").open("wb") as flat,
            (folder / "ends").open("wb") as ends,
            (folder / "hashes").open("wb") as hashes,
            bar,
        ):
            ends.write(np.zeros(1, np.int64))
            encoded = parallel_map(lambda block: (block[0], *encoder(block[1])), blocks(bar))
            for shard, numbers, lengths, *hashed in encoded:
                flat.write(numbers.astype(dtype, copy=False))
                ends.write(np.cumsum(lengths, dtype=np.int64) + total)
                hashes.writelines(hashed)
                total += int(lengths.sum())
                counts[shard + 1] += len(lengths)
        return {"starts": np.cumsum(counts).tolist()}

    folder, record = cache.entry(f"{kind}-{key}", make)
    names = {"flat": dtype, "ends": np.int64, "hashes": np.int64}
    return RaggedArray(*(_mapped(folder / name, names[name]) for name in names), record["starts"])


def _unchanged_blocks(path: Path, digest: str, bar: tqdm) -> Iterator[bytes]:
    """Yields the lines of a file in blocks; refuses a text that no longer has this digest."""
    sha = hashlib.sha256()

    def pieces() -> Iterator[bytes]:
        for piece in read_pieces(path):
            sha.update(piece)
            bar.update(len(piece))
            yield piece

    yield from read_blocks(pieces(), path)
    if sha.hexdigest() != digest:
        raise changed_while_read(path)


def _mapped(path: Path, dtype: type) -> np.ndarray:
    # A plain array reads single entries faster than np.memmap. An empty file cannot be mapped.
    return np.asarray(np.memmap(path, dtype, "r")) if path.stat().st_size else np.zeros(0, dtype)
