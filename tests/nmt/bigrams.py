"""The smallest model that satisfies the contract.

It compiles quickly and knows nothing of the real architectures.
"""

import itertools
import json

import keras
import numpy as np
import tensorflow as tf

from nmt.model.contract import NextWords

WORDS = ["a", "b", "c", "d"]


class Bigrams:
    """The probability of each target word given the word before; the source is ignored.

    A `TranslationModel`.
    """

    first_word = 0

    def __init__(self, config, source_words, target_words, *, dropout=0.0):
        self.table = keras.Variable(
            np.zeros([target_words, target_words]), dtype="float32", name="table"
        )
        self.variables = self.trainable_variables = [self.table]
        self._dropout = dropout

    def costs(self, *batch):
        return tf.reduce_sum(self.word_costs(*batch), -1)

    def word_costs(self, source, source_mask, target, target_mask):
        before = tf.pad(target[:, :-1], [[0, 0], [1, 0]])
        log_p = tf.gather(self._log_probabilities(before), target, batch_dims=2)
        return -log_p * target_mask

    def total_cost(
        self, source, source_mask, target, target_mask, *, label_smoothing, dropout_seed
    ):
        """Drops the costs of some words. Label smoothing is ignored."""
        kept = tf.random.stateless_uniform(tf.shape(target), dropout_seed) >= self._dropout
        return tf.reduce_sum(
            self.costs(source, source_mask, target, target_mask * tf.cast(kept, tf.float32))
        )

    def encode(self, source, source_mask):
        return tf.zeros([tf.shape(source)[0], 1]), source_mask

    def step_weights(self):
        return [tf.nn.log_softmax(tf.convert_to_tensor(self.table))]

    def make_step(self, weights=None):
        (table,) = weights or self.step_weights()

        def step(words, state, memory):
            found = NextWords(tf.gather(table, words), tf.zeros(tf.shape(words)))
            return found, state, memory

        return step

    def _log_probabilities(self, words):
        return tf.nn.log_softmax(tf.gather(tf.convert_to_tensor(self.table), words))


def write_training(directory):
    """Writes a corpus and dictionaries.

    Returns the arguments to train `Bigrams` for 30 updates, without `-m MODEL`.
    """
    lines = [" ".join(words) for words in itertools.product(WORDS, repeat=3)]
    for name in ("train.en", "train.de", "dev.en", "dev.de"):
        (directory / name).write_text("".join(f"{line}\n" for line in lines))
    (directory / "words.json").write_text(
        json.dumps({word: i for i, word in enumerate(["eos", "UNK", *WORDS])})
    )
    return [
        *("train", "--source_dataset", "train.en", "--target_dataset", "train.de"),
        *("--valid_source_dataset", "dev.en", "--valid_target_dataset", "dev.de"),
        *("--dictionaries", "words.json", "words.json", "--model_type", "bigrams"),
        *("--embedding_size", 8, "--state_size", 8, "--learning_rate", 0.03),
        *("--batch_size", 16, "--maxlen", 7, "--beam_size", 2, "--translation_maxlen", 5),
        *("--valid_freq", 5, "--summary_freq", 3, "--finish_after", 30, "--seed", 1),
    ]
