"""Models with scripted probabilities, and all that they could say."""

import itertools

import numpy as np
import tensorflow as tf

START = -1
END = 0


def scripted(tables):
    """Returns a decode step for one sentence per table; `table[time][last_word]` are next-word
    probabilities.

    The state is the time. The state and the memory hold the sentence's number too.
    """
    tables = np.log(np.asarray(tables, np.float32))

    def step(words, state, memory):
        time, sentence = state
        tf.debugging.assert_equal(
            sentence, tf.repeat(memory, tf.size(sentence) // tf.maximum(tf.size(memory), 1))
        )
        last = tf.maximum(words, 0)  # the table's row 0 is used for the start too
        logits = tf.gather_nd(tables, tf.stack([sentence, time, last], 1))
        return (logits, tf.zeros_like(logits[:, 0])), (time + 1, sentence), memory

    return step


def random_table(rng, times, words):
    """Draws the probabilities after each word at each time.

    At the last time every sentence ends.
    """
    table = rng.dirichlet(np.full(words, 0.4), size=(times, words)) + 1e-6
    table[-1] = 1e-6
    table[-1, :, END] = 1.0
    return table / table.sum(-1, keepdims=True)


def exhaustive(table, max_length, alpha=0.0):
    """Returns (score, words) of every sequence of at most `max_length` words, best first."""
    found = []
    words = range(1, table.shape[-1])
    for length in range(max_length + 1):
        for sequence in itertools.product(words, repeat=length):
            probabilities = [
                table[time][last][word]
                for time, (last, word) in enumerate(
                    zip((0, *sequence), (*sequence, END), strict=True)
                )
            ]
            found.append(
                (-np.log(np.float64(probabilities)).sum() / (length + 1) ** alpha, sequence)
            )
    return sorted(found)
