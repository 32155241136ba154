"""Updates and trainers of small models."""

import functools

import keras
import pytest

from nmt.config import Config, make_config
from nmt.decoding.options import DecodingOptions
from nmt.decoding.scoring import Scorer
from nmt.model.registry import build_model
from nmt.storage.cache import open_cache
from nmt.text.datasets import TrainingData, ValidationData
from nmt.text.parallel_text import ParallelText
from nmt.text.vocabulary import Vocabularies
from nmt.training.trainer import Trainer
from nmt.training.update import Update
from nmt.training.validation import measure
from tests.nmt.bigrams import Bigrams
from tests.nmt.training.scripted import CUT, FILES, LINES, build_bigrams, copy


@pytest.fixture
def make_trainer(write_lines, vocabulary, eagerly):
    """Makes a trainer of a model; the translations of its validations can be scripted."""

    def make(directory, translate=copy, build=build_bigrams, files=None, lines=LINES, **options):
        directory.mkdir(exist_ok=True)
        valid_files = files or [write_lines("copied", lines)]
        files = [str(write_lines("copied", lines))] * 2
        given = dict(zip(("source_dataset", "target_dataset"), files, strict=True))
        given |= {
            f"valid_{side}_dataset": list(map(str, valid_files)) for side in ("source", "target")
        }
        defaults = {
            "batch_size": 16,
            "maxlen": 9,
            "valid_batch_size": 32,
            "learning_rate": 0.01,
            "valid_freq": 3,
            "finish_after": 6,
            "seed": 5,
        }
        config = make_config(
            {**given, "dictionaries": ("a.json", "b.json"), "seed": 5, **defaults, **options}
        )
        keras.utils.set_random_seed(config.seed)
        model = build(config, 6, 6)
        text = ParallelText(*files)
        vocabularies = Vocabularies(vocabulary, vocabulary)
        data = TrainingData(text, vocabularies, config, open_cache())
        valid = ValidationData(ParallelText(valid_files, valid_files), vocabularies, config)
        trainer = Trainer(Update(model, config), directory, {})

        def translated(lines):
            return [(text, text == CUT) for text in translate(lines)]

        def train(expected=""):
            scorer = Scorer(vocabularies, model, DecodingOptions(normalization_alpha=0.0))
            trainer.require_updates_left(data)
            validate = functools.partial(measure, scorer.scores_of_ids, valid, translated, config)
            assert expected in trainer.train(data, validate)
            return trainer.progress

        return train, model

    return make


@pytest.fixture
def make_update():
    """Makes a small model of 6 words a side with these options.

    Returns its update and the model.
    """

    def make(kind="layernorm", **options):
        keras.utils.set_random_seed(1)
        sizes = {"embedding_size": 5, "state_size": 7, "layer_normalization_type": kind}
        config = make_config({**FILES, "dictionaries": ["-", "-"], **sizes, **options})
        model = build_model(config, 6, 6)
        return Update(model, config), model

    return make


@pytest.fixture
def make_bigrams_update():
    """Makes an update of the smallest model, which has a sparse gradient. Returns both."""

    def make(**options):
        config = Config(learning_rate=0.1, **options)
        model = Bigrams(config, 6, 6)
        return Update(model, config), model

    return make
