"""`python -m nmt export-nematus`."""

import argparse
import json
from pathlib import Path

import tensorflow as tf

from ..nematus_models.exporting import VERSIONS, Words, export_checkpoint
from ..system import load_system
from ..text.vocabulary import Vocabulary
from .arguments import add_path, say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="DIR", help="directory of a trained model (required)")
    add_path(parser, "--to", metavar="MODEL", required=True, help="path of the checkpoint without extension")
    parser.add_argument(
        "--version", choices=VERSIONS, default="master", help="the Nematus that reads it; master is also for v0.5"
    )


def run(arguments: argparse.Namespace) -> None:
    """Converts a model to a Nematus checkpoint."""
    system = load_system(arguments.model)
    words = tuple(
        _words(arguments.model / f"{side}{Path(name).suffix}", vocabulary)
        for side, name, vocabulary in zip(
            ("source", "target"), system.config.dictionaries, system.vocabularies, strict=True
        )
    )
    export_checkpoint(arguments.to, system.config, system.model.variables, words, arguments.version)
    say(f"{arguments.to} holds the model of {arguments.model} for Nematus {arguments.version}")


def _words(path: Path, vocabulary: Vocabulary) -> Words:
    if path.suffix == ".json":
        ids = json.loads(path.read_text(encoding="utf-8"))
        inside = {word: i for word, i in ids.items() if i < vocabulary.size}
        return Words(inside, vocabulary.unknown, vocabulary.size)
    pieces = [piece.decode() for piece in vocabulary.tokens(tf.range(vocabulary.size)).numpy()]
    if vocabulary.unknown == 2:
        pieces[:3] = ["<EOS>", "<GO>", "<UNK>"]
    return Words({piece: i for i, piece in enumerate(pieces)}, vocabulary.unknown, vocabulary.size)
