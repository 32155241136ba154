"""Sentences of novels with the sentences before and after them."""

import itertools
from typing import NamedTuple

import numpy as np

from nmt.errors import UserError

from ..data_sets.arrays import Parts
from ..data_sets.files import most_frequent
from ..data_sets.novels import Sentence, hold_out, read_novels

WORDS = 2000  # ids: of padding, any other word, the end, and the most frequent words
PADDING, UNKNOWN, END = range(3)
LONGEST = 20  # words of a sentence; longer ones and their neighbours are left out
_HELD_OUT = 0.05  # of the sentences, at least, for validation


class Part(NamedTuple):
    """Sentences in their order, and which of them have both neighbours."""

    ids: np.ndarray  # ids of words `[sentences, LONGEST + 1]`, each with its end, padded with 0
    # indices of sentences whose neighbours are sentences of the same novel, `[triples]`
    middles: np.ndarray


def read_corpus(data: str) -> Parts:
    """Reads a folder of novels; see `read_novels`.

    The same corpus comes every time. Nothing is for the test.

    Raises:
        UserError: A part has no three sentences in a row that are short enough.
    """
    train, valid = hold_out(read_novels(data), _HELD_OUT, parts=1)
    sentences = itertools.chain(*train)
    text = map(str.lower, itertools.chain.from_iterable(sentences))
    words = most_frequent(text, WORDS - END - 1, first=END + 1)
    parts = [_encode(part, words) for part in (train, valid)]
    if not all(len(part.middles) for part in parts):
        raise UserError(
            f"{data} has no three sentences in a row of up to {LONGEST} words in one of its parts"
        )
    return Parts(*parts)


def to_ids(sentences: list[Sentence], words: dict[str, int]) -> np.ndarray:
    """Returns the ids of sentences with their ends, `[sentences, LONGEST + 1]`.

    Words beyond `LONGEST` are cut off.
    """
    found = np.full((len(sentences), LONGEST + 1), PADDING, np.int32)
    for row, sentence in zip(found, sentences, strict=True):
        ids = [words.get(word.lower(), UNKNOWN) for word in sentence[:LONGEST]]
        row[: len(ids) + 1] = [*ids, END]
    return found


def _encode(novels: list[list[Sentence]], words: dict[str, int]) -> Part:
    sentences = list(itertools.chain(*novels))
    number = np.repeat(np.arange(len(novels)), [len(novel) for novel in novels])  # of the novel
    fits = np.array([len(sentence) <= LONGEST for sentence in sentences], bool)
    together = fits[:-2] & fits[1:-1] & fits[2:] & (number[:-2] == number[2:])
    return Part(to_ids(sentences, words), 1 + np.flatnonzero(together))
