"""Reads captions of images, and makes of two of each a stand-in for the image."""

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from nmt.errors import UserError

from ..data_sets.arrays import Parts
from ..data_sets.files import find_files, most_frequent, read_text

SPLITS = {"train": "train", "valid": "val", "test": "test_2016"}  # names in the files
IMAGE = (1, 2)  # the captions that stand for the image
CAPTIONS = (3, 4, 5)
FEATURES = 4096  # words of the image captions
WORDS = 5000  # words of the captions; id 0 pads, id 1 is any other word
LONGEST = 20  # words of a caption; the rest is cut off

_WORD = re.compile(r"\w+")


class Part(NamedTuple):
    """Images and captions.

    Images are a sparse matrix `[images, features]`, captions word ids `[images, captions, time]`.
    """

    images: sparse.csr_matrix
    captions: np.ndarray


def read_corpus(data: str) -> Parts:
    """Reads a folder with five captions of each image, in files as `train.1.en` or `train.1.en.gz`.

    There are no features of images in it. In their place, an image is the tf-idf vector of its
    captions 1 and 2, of length 1; captions 3 to 5 are to be matched with it. Frequencies and
    vocabularies are those of the training images.

    Args:
        data: The folder; its files are named by `SPLITS`, the number of the caption, and `en`.

    Raises:
        UserError: The folder is not given, lacks a file, or has files of one split with different
            numbers of lines.
    """
    if not data:
        raise UserError(
            "give the folder of the captions, task 2 of Multi30k: DATA=/path/to/captions"
        )
    texts = {part: _read_split(Path(data), name) for part, name in SPLITS.items()}
    features = most_frequent(_words(lines[: len(IMAGE)] for lines in texts["train"]), FEATURES)
    words = most_frequent(_words(lines[len(IMAGE) :] for lines in texts["train"]), WORDS - 2)
    counts = {part: _counts(lines, features) for part, lines in texts.items()}
    frequencies = np.asarray((counts["train"] > 0).sum(0)).reshape(-1)  # [features], of images
    weights = np.log(counts["train"].shape[0] / np.maximum(frequencies, 1))
    return Parts(
        *(Part(_weighted(counts[part], weights), _ids(texts[part], words)) for part in SPLITS)
    )


def _read_split(folder: Path, name: str) -> list[tuple[list[str], ...]]:
    """Returns the words of the five captions of each image."""
    paths = find_files(folder, [f"{name}.{number}.en" for number in (*IMAGE, *CAPTIONS)])
    columns = [list(map(_WORD.findall, read_text(path).lower().splitlines())) for path in paths]
    if len({len(lines) for lines in columns}) > 1:
        raise UserError(
            f"{folder}: files {name}.*.en have {', '.join(str(len(lines)) for lines in columns)} "
            "lines"
        )
    return list(zip(*columns, strict=True))


def _words(captions: Iterable[tuple[list[str], ...]]) -> Iterator[str]:
    """Yields the words of some captions of each image."""
    for of_image in captions:
        yield from itertools.chain(*of_image)


def _counts(texts: list[tuple[list[str], ...]], features: dict[str, int]) -> sparse.csr_matrix:
    """Counts the words in the captions that stand for an image, `[images, FEATURES]`."""
    cells = []
    for image, captions in enumerate(texts):
        words = itertools.chain(*captions[: len(IMAGE)])
        cells += [(image, features[word]) for word in words if word in features]
    rows, columns = np.array(cells, np.int64).reshape(-1, 2).T
    return sparse.csr_matrix(
        (np.ones(len(cells), np.float32), (rows, columns)), (len(texts), len(features))
    )


def _weighted(counts: sparse.csr_matrix, weights: np.ndarray) -> sparse.csr_matrix:
    """Returns the weighted counts with rows of length 1."""
    found = counts.multiply(weights).tocsr()
    lengths = np.sqrt(np.asarray(found.multiply(found).sum(1)).reshape(-1))
    return sparse.diags(1 / np.maximum(lengths, 1e-12)).dot(found).astype(np.float32)


def _ids(texts: list[tuple[list[str], ...]], words: dict[str, int]) -> np.ndarray:
    """Returns the ids of the captions, `[images, captions, LONGEST]`.

    An empty caption is one unknown word.
    """
    ids = np.zeros((len(texts), len(CAPTIONS), LONGEST), np.int32)
    for image, captions in enumerate(texts):
        for number, caption in enumerate(captions[len(IMAGE) :]):
            found = [words[word] + 2 if word in words else 1 for word in caption[:LONGEST]] or [1]
            ids[image, number, : len(found)] = found
    return ids
