"""The network: one GRU reads a sentence, two others write the sentences before and after it."""

import keras
from keras import ops

from rmsnorm_tf import RMSNormGRU

from ..runs.kinds import cell_options
from ..runs.run import Condition
from .data import END, LONGEST, PADDING, WORDS

UNITS = 128  # of a sentence vector; the paper has 2400
WORD_UNITS = 64  # the paper has 620
CLIP = 5.0  # of the global norm of the gradient
NEIGHBOURS = ("before", "after")


def build_model(
    condition: Condition,
    step_size: float,
    seed: int,
    units: int = UNITS,
    word_units: int = WORD_UNITS,
) -> keras.Model:
    """Returns the compiled network of a condition.

    It maps sentences and their neighbours to logits of the neighbours' words. The inputs are ids
    `[batch, LONGEST + 1]` of the sentences and `[batch, 2, LONGEST + 1]` of their neighbours; the
    output is `[batch, 2, LONGEST + 1, WORDS]`. Each word of a neighbour is predicted from the words
    before it and the last state of the GRU that reads the sentence. The seed alone determines the
    initial weights.

    Args:
        condition: Its options are arguments of the GRUs.

    Reference: Kiros et al. (2015), arXiv:1506.06726. There, each gate of the decoders has a term
    for the sentence. Here and in the code that Ba et al. (2016) use, the decoders begin with it.
    """
    keras.utils.set_random_seed(seed)
    sentence = keras.Input((LONGEST + 1,), dtype="int32", name="sentence")
    neighbours = keras.Input((2, LONGEST + 1), dtype="int32", name="neighbours")
    words = keras.layers.Embedding(WORDS, word_units, mask_zero=True, name="words")
    thought = RMSNormGRU(units, name="thought", **cell_options(condition))(words(sentence))
    # The word before each word.
    before = ops.pad(neighbours[:, :, :-1], ((0, 0), (0, 0), (1, 0)), constant_values=END)
    states = []
    for index, name in enumerate(NEIGHBOURS):
        decoder = RMSNormGRU(units, return_sequences=True, name=name, **cell_options(condition))
        states.append(decoder(words(before[:, index]), initial_state=thought))
    logits = keras.layers.Dense(WORDS, name="next_word")(ops.stack(states, 1))
    model = keras.Model([sentence, neighbours], logits)
    optimizer = keras.optimizers.Adam(step_size, global_clipnorm=CLIP)
    model.compile(optimizer=optimizer, loss=nats_per_word, jit_compile=True)
    return model


def nats_per_word(ids, logits):
    """Returns the mean cross entropy of all words of a batch, ends counted and padding not.

    Args:
        ids: `[batch, 2, LONGEST + 1]`.
        logits: `[batch, 2, LONGEST + 1, WORDS]`.
    """
    costs = keras.losses.sparse_categorical_crossentropy(ids, logits, from_logits=True)
    is_word = ops.cast(ids != PADDING, costs.dtype)
    return ops.sum(costs * is_word) / ops.sum(is_word)
