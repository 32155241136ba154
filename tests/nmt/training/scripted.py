"""Small batches, models that copy, and stand-ins for translation."""

import itertools

import tensorflow as tf

from nmt.text.batches import Batch
from tests.nmt.bigrams import Bigrams

LINES = [" ".join((*words, "d")) for words in itertools.product("abcd", repeat=3)]


FILES = dict.fromkeys(
    ("source_dataset", "target_dataset", "valid_source_dataset", "valid_target_dataset"), "-"
)
IDS = tf.constant([[2, 3, 4, 0], [5, 2, 0, 0]])
MASK = tf.constant([[1.0, 1, 1, 1], [1, 1, 1, 0]])
BATCH = Batch(IDS, MASK, IDS, MASK)

TRANSFORMER = {
    "model_type": "transformer",
    **{"state_size": 8, "embedding_size": 8, "transformer_num_heads": 2},
    **{"transformer_enc_depth": 1, "transformer_dec_depth": 1, "transformer_ffn_hidden_size": 9},
}

CUT = "x y z"  # a translation that the limit of its length ended


def copy(lines):
    return [line.decode() for line in lines]


def build_bigrams(*arguments):
    return Bigrams(*arguments, dropout=0.1)


def scripted(scores):
    """Returns a stand-in for translation that copies a given share of the lines in each
    validation."""
    shares = iter(scores)

    def translate(lines):
        kept = round(next(shares) * len(lines))
        return [line.decode() if i < kept else CUT for i, line in enumerate(lines)]

    return translate
