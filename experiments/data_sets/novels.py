"""Novels as sentences of words."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from nmt.errors import UserError

from .files import read_text

Sentence = list[str]
Novel = TypeVar("Novel", bound=list)

_SEED = 0  # of the novels that are held out
_TITLES = ("Mr", "Mrs", "Dr", "St", "Messrs", "Esq")  # a full stop after them ends no sentence
_WORD = re.compile(r"['\u2019]s\b|[^\W_]+|[^\w\s]")  # `_` marks emphasis
_OPENING = "\"'\u2018\u201c("
_END = re.compile(rf"(?<=[.!?])(?P<closing>[\"'\u2019\u201d)]*)\s+(?=[{_OPENING}]*[A-Z])")


def read_novels(data: str) -> dict[str, list[Sentence]]:
    """Reads a folder of novels in plain text, one file each.

    Args:
        data: The folder. Its files end in `.txt` or `.txt.gz`.

    Returns:
        The sentences of each novel by the name of its file. A sentence is a list of words and
        punctuation marks.

    Raises:
        UserError: The folder is not given, has no such files, or one cannot be read.
    """
    if not data:
        raise UserError(
            "give a folder of novels in plain text: DATA=/path/to/novels; Project Gutenberg has "
            "them"
        )
    paths = sorted(path for path in Path(data).glob("*") if path.name.endswith((".txt", ".txt.gz")))
    if not paths:
        raise UserError(
            f"{data} has no novels; give a folder of texts in English that end in .txt or .txt.gz"
        )
    names = [path.name.removesuffix(".gz").removesuffix(".txt") for path in paths]
    return {name: split_sentences(read_text(path)) for name, path in zip(names, paths, strict=True)}


def hold_out(novels: Mapping[str, Novel], share: float, parts: int) -> list[list[Novel]]:
    """Returns the novels to train on, and those of each part that is held out.

    The names choose, at random.

    Args:
        novels: What is made of each novel, by its name.
        share: The least share of the total length in each part that is held out, if there are
            enough novels.
        parts: Number of parts to hold out.
    """
    names = np.random.default_rng(_SEED).permutation(sorted(novels)).tolist()
    held_out: list[list[Novel]] = [[] for _ in range(parts)]
    for part in held_out:
        while names and sum(map(len, part)) < share * sum(map(len, novels.values())):
            part.append(novels[names.pop(0)])
    return [[novels[name] for name in names], *held_out]


def split_sentences(text: str) -> list[Sentence]:
    """Returns the sentences of a text.

    >>> split_sentences("Mr. Knightley saw Emma's work. He _smiled_.")
    [['Mr', '.', 'Knightley', 'saw', 'Emma', "'s", 'work', '.'], ['He', 'smiled', '.']]
    """
    found = []
    start = 0
    for end in _END.finditer(text):
        before = text[start : end.start()].rstrip(".").rsplit(maxsplit=1)
        if before and before[-1].lstrip(_OPENING) in _TITLES:
            continue
        found.append(text[start : end.end("closing")])
        start = end.end()
    found.append(text[start:])
    return list(filter(None, map(_WORD.findall, found)))
