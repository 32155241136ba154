"""`python -m nmt vocab`."""

import argparse
import itertools

from ..messages import log
from ..storage.files import atomic_write
from ..text.sentencepiece_training import train_sentencepiece
from ..text.vocabulary import load_vocabulary

_OPTIONS = ("kind", "sample_lines", "character_coverage", "byte_fallback", "user_symbols", "normalization_rule")
_OPTIONS += ("split_digits", "begin_symbol")  # of `train_sentencepiece`


def run(arguments: argparse.Namespace) -> None:
    source, target = arguments.source_dataset, arguments.target_dataset
    arguments.to.mkdir(parents=True, exist_ok=True)
    options = {name: getattr(arguments, name) for name in _OPTIONS}
    # Both are trained before one is written: a training that fails replaces neither.
    if arguments.joint:
        texts = [[source, target]] * 2
        models = [train_sentencepiece(texts[0], arguments.size, **options)] * 2
    else:
        texts = [[source], [target]]
        models = [train_sentencepiece(each, arguments.size, **options) for each in texts]
    for side, text, model in zip(("source", "target"), texts, models, strict=True):
        path = arguments.to / f"{side}.model"
        with atomic_write(path, "wb") as file:
            file.write(model)
        log.info(f"{path}: {load_vocabulary(path).size} units of {' and '.join(itertools.chain(*text))}")
