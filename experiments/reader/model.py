"""The network: an attentive reader, which numbers the names of each example anew in every update."""

from typing import NamedTuple

import keras
from keras import ops

from rmsnorm_tf import RMSNormLSTM

from ..trials.cell_rows import cell_options
from ..trials.trial import TrialRow
from .data import ENTITIES, FIRST_ENTITY, LONGEST_PASSAGE, PADDING, QUESTION, WORDS

CLIP = 10.0  # of the global norm of the gradient
READERS = ("passage", "question")


class Sizes(NamedTuple):
    """Sizes of a network."""

    units: int = 128  # of an LSTM of one direction; the paper has 240
    word_units: int = 128


@keras.saving.register_keras_serializable(package="experiments.reader")
class Renumber(keras.layers.Layer):
    """Numbers the entities of each example anew, at random, in training; otherwise it keeps their numbers.

    A call maps ids `[batch, time]` of passages and questions to the new ids of both, and to the new number of each
    entity, `[batch, ENTITIES]`. So the network learns nothing about a number.

    Args:
        seed: Seed of the numbers.
        **kwargs: Arguments of every Keras layer.
    """

    def __init__(self, seed: int, **kwargs):
        super().__init__(**kwargs)
        self.seed, self.generator = seed, keras.random.SeedGenerator(seed)

    def call(self, passages, questions, training=False):
        batch = ops.shape(passages)[0]
        numbers = ops.broadcast_to(ops.arange(ENTITIES, dtype="int32"), (batch, ENTITIES))
        if training:
            numbers = ops.argsort(keras.random.uniform((batch, ENTITIES), seed=self.generator), -1)
        return _renumbered(passages, numbers), _renumbered(questions, numbers), numbers

    def get_config(self):
        return {**super().get_config(), "seed": self.seed}


def build_model(row: TrialRow, step_size: float, seed: int, sizes: Sizes) -> keras.Model:
    """Returns the compiled network of a row. It maps passages and questions to logits of the entities.

        m = tanh(d W + q V + (d B) * (q C));  a = softmax(m w);  r = sum over time of a * d
        logits = tanh(r R + q Q + mean(d) D) E

    Here d are the states of both directions over the passage, and q the last states of both over the question. The seed
    alone determines initial weights and numbers of entities.

    Args:
        row: Its options are arguments of the LSTMs.
        step_size: Step size of Adam.
        seed: Seed of the initial weights and of the numbers.
        sizes: Sizes of the network.

    Reference: Hermann et al. (2015), arXiv:1506.03340, section 3.2.
    """
    keras.utils.set_random_seed(seed)
    passages = keras.Input((LONGEST_PASSAGE,), dtype="int32", name="passages")
    questions = keras.Input((QUESTION[1],), dtype="int32", name="questions")
    passage, question, numbers = Renumber(seed, name="numbers")(passages, questions)
    words = keras.layers.Embedding(WORDS, sizes.word_units, mask_zero=True, name="words")
    d = _reader("passage", row, sizes, return_sequences=True)(words(passage))  # [batch, time, 2 * units]
    q = _reader("question", row, sizes)(words(question))  # [batch, 2 * units]

    def dense(name: str, size: int = 2 * sizes.units, **options):
        return keras.layers.Dense(size, use_bias=False, name=name, **options)

    similar = dense("d_similar")(d) * dense("q_similar")(q)[:, None]
    m = ops.tanh(dense("d_match")(d) + dense("q_match")(q)[:, None] + similar)
    seen = ops.cast(passages != PADDING, "float32")
    attention = ops.softmax(dense("attention", 1)(m)[..., 0] - 1e9 * (1 - seen), -1)
    read = ops.einsum("bt,btu->bu", attention, d)
    mean = ops.einsum("bt,btu->bu", seen / ops.sum(seen, -1, keepdims=True), d)
    joined = ops.tanh(dense("read")(read) + dense("asked")(q) + dense("mean")(mean))
    logits = keras.layers.Dense(ENTITIES, name="entities")(joined)
    model = keras.Model([passages, questions], ops.take_along_axis(logits, numbers, -1))
    model.compile(
        optimizer=keras.optimizers.Adam(step_size, global_clipnorm=CLIP),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
        jit_compile=True,
    )
    return model


def _reader(name: str, row: TrialRow, sizes: Sizes, **options) -> keras.layers.Layer:
    return keras.layers.Bidirectional(RMSNormLSTM(sizes.units, name="lstm", **cell_options(row), **options), name=name)


def _renumbered(ids, numbers):
    """Returns ids `[batch, time]` with the new numbers `[batch, ENTITIES]` of the entities."""
    old = ids - FIRST_ENTITY
    is_entity = (old >= 0) & (old < ENTITIES)
    new = ops.take_along_axis(numbers, ops.clip(old, 0, ENTITIES - 1), -1)
    return ops.where(is_entity, FIRST_ENTITY + ops.cast(new, ids.dtype), ids)
