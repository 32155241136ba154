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


def beam_in_numpy(table, beam_size, alpha, limit, allowed=lambda words, ended: True):
    """Searches for the translations of one sentence, as `search.py` describes it.

    Returns (score, words, cut) of each, best first.
    """
    opened = [(0.0, ())]
    finished = []
    for time in range(limit + 1):
        extensions = []
        for cost, words in opened:
            costs = cost - np.log(np.float64(table[time][words[-1] if words else 0]))
            likeliest = costs.argmin()
            for word in [END] if time == limit else range(len(costs)):
                if allowed(words if word == END else (*words, word), word == END):
                    cut = time == limit and likeliest != END
                    extensions.append((costs[word], words, word, cut))
        extensions.sort(key=lambda extension: extension[0])
        finished += [
            (cost / (len(words) + 1) ** alpha, words, cut)
            for cost, words, word, cut in extensions[:beam_size]
            if word == END
        ]
        finished = sorted(finished, key=lambda each: each[0])[:beam_size]
        opened = [(cost, (*words, word)) for cost, words, word, _ in extensions if word != END][
            :beam_size
        ]
        best_open = min(
            (cost / (len(words) + 1) ** alpha for cost, words in opened), default=np.inf
        )
        if len(finished) == beam_size and (beam_size == 1 or best_open >= finished[-1][0]):
            break
    return finished
