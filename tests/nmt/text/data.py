"""Makes training and validation data for tests."""

import itertools

import numpy as np

from nmt.config import Config
from nmt.storage.cache import open_cache
from nmt.text.datasets import TrainingData, ValidationData
from nmt.text.vocabulary import Vocabularies


def training_data(text, vocabulary, cache=None, **options):
    """Makes training data with one vocabulary for both sides."""
    return TrainingData(
        text, Vocabularies(vocabulary, vocabulary), Config(**options), cache or open_cache()
    )


def validation_data(text, vocabulary, **options):
    """Makes validation data with one vocabulary for both sides."""
    return ValidationData(text, Vocabularies(vocabulary, vocabulary), Config(**options))


def take(data, count, first=0):
    batches = itertools.islice(data.batches(first), count)
    return [list(map(np.asarray, batch)) for batch in batches]
