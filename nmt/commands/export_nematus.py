"""`python -m nmt export-nematus`."""

import argparse
import json
from pathlib import Path

import tensorflow as tf

from ..messages import log
from ..nematus_models.exporting import Words, export_checkpoint
from ..system import load_system
from ..text.vocabulary import Vocabulary


def run(arguments: argparse.Namespace) -> None:
    system = load_system(arguments.model)
    words = tuple(
        _words(arguments.model / f"{side}{Path(name).suffix}", vocabulary)
        for side, name, vocabulary in zip(
            ("source", "target"), system.config.dictionaries, system.vocabularies, strict=True
        )
    )
    export_checkpoint(arguments.to, system.config, system.model.variables, words, arguments.version)
    log.info(f"{arguments.to} holds the model of {arguments.model} for Nematus {arguments.version}")


def _words(path: Path, vocabulary: Vocabulary) -> Words:
    if path.suffix == ".json":
        ids = json.loads(path.read_text(encoding="utf-8"))
        inside = {word: i for word, i in ids.items() if i < vocabulary.size}
        return Words(inside, vocabulary.unknown, vocabulary.size)
    pieces = [piece.decode() for piece in vocabulary.tokens(tf.range(vocabulary.size)).numpy()]
    if vocabulary.unknown == 2:
        pieces[:3] = ["<EOS>", "<GO>", "<UNK>"]
    return Words({piece: i for i, piece in enumerate(pieces)}, vocabulary.unknown, vocabulary.size)
