"""An ensemble is the sum of its models."""

import numpy as np
import pytest
import tensorflow as tf

from nmt.config import make_config
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.options import DecodingOptions
from nmt.decoding.translator import Translator
from nmt.model.registry import build_model
from nmt.text.batches import pad
from nmt.text.vocabulary import Vocabularies
from tests.nmt.training.scripted import FILES, TRANSFORMER

RNN = {"embedding_size": 6, "state_size": 5}
LINES = ["a b", "d c c b a"]
OPTIONS = DecodingOptions(beam_size=3, normalization_alpha=0.0, translation_maxlen=4)


def build(options):
    """Builds a model with large random weights; with initial weights all words are nearly alike."""
    model = build_model(make_config({**FILES, "dictionaries": ["-", "-"], **options}), 6, 6)
    for number, variable in enumerate(model.variables):
        variable.assign(variable + tf.random.stateless_normal(variable.shape, [1, number]) / 2)
    return model


def translate(model, vocabulary):
    lines = Translator(Vocabularies(vocabulary, vocabulary), model, OPTIONS).lines(LINES)
    return [list(zip(line.texts, line.scores, strict=True)) for line in lines]


@pytest.mark.slow
def test_a_translation_costs_the_sum_over_architectures(vocabulary):
    """The search sums step by step; the costs of whole sentences say the same."""
    models = [build(RNN), build(TRANSFORMER)]
    for line, beam in zip(LINES, translate(Ensemble(models), vocabulary), strict=True):
        texts, scores = zip(*beam, strict=True)
        source = pad(vocabulary.encode(tf.constant([line] * len(texts))))
        target = pad(vocabulary.encode(tf.constant(texts)))
        costs = sum(model.costs(*source, *target).numpy() for model in models)
        np.testing.assert_allclose(scores, costs, rtol=1e-4)
        of_words = Ensemble(models).word_costs(*source, *target)
        np.testing.assert_allclose(tf.reduce_sum(of_words, 1), costs, rtol=1e-6)
