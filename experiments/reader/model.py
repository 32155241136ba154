"""The network: an attentive reader, which numbers the names of each example anew in every update."""

from typing import Any, NamedTuple

import keras
from keras import ops

from rmsnorm_tf import RMSNormLSTM

from ..runs.kinds import EPSILON, cell_options
from ..runs.networks import compile_classifier
from ..runs.run import Condition
from .batch_normalization import GAIN, BatchNormLSTMCell
from .data import ENTITIES, FIRST_ENTITY, PADDING, PASSAGE, SENTENCE, WORDS

CLIP = 10.0  # of the global norm of the gradient
READERS = ("passage", "question")
_OF_THE_MODEL = (
    "gain",
    "normalize_attention",
)  # options of a condition that are not arguments of its LSTMs


class Sizes(NamedTuple):
    """Sizes of a network."""

    units: int = 64  # of an LSTM of one direction; the paper has 240
    word_units: int = 64


SIZES = Sizes()


@keras.saving.register_keras_serializable(package="experiments.reader")
class Renumber(keras.layers.Layer):
    """Numbers the entities of each example anew, at random, in training; otherwise it keeps their
    numbers.

    A call maps ids `[batch, time]` of passages and questions to the new ids of both, and to the new
    number of each entity, `[batch, ENTITIES]`. So the network learns nothing about a number.

    Args:
        seed: Seed of the numbers.
        **kwargs: Arguments of every Keras layer.
    """

    def __init__(self, seed: int, **kwargs):
        super().__init__(**kwargs)
        self.seed = seed
        self.generator = keras.random.SeedGenerator(seed)

    def call(self, passages, questions, training=False):
        batch = ops.shape(passages)[0]
        numbers = ops.broadcast_to(ops.arange(ENTITIES, dtype="int32"), (batch, ENTITIES))
        if training:
            numbers = ops.argsort(keras.random.uniform((batch, ENTITIES), seed=self.generator), -1)
        return _renumbered(passages, numbers), _renumbered(questions, numbers), numbers


def build_model(
    condition: Condition, step_size: float, seed: int, sizes: Sizes = SIZES
) -> keras.Model:
    """Returns the compiled network of a condition. It maps passages and questions to logits of the
    entities.

        m = tanh(d W + q V + (d B) * (q C));  a = softmax(m w);  r = sum over time of a * d
        logits = tanh(r R + q Q + mean(d) D) E

    Here d are the states of both directions over the passage, and q the last states of both over
    the question. The seed alone determines initial weights and numbers of entities.

    Args:
        condition: Its options are arguments of the LSTMs; see `build_lstm`. `gain` is the initial
            value of all gains, and with `normalize_attention`, all terms of the sums before a tanh
            are normalized over the batch.

    Reference: Hermann et al. (2015), arXiv:1506.03340, section 3.2.
    """
    keras.utils.set_random_seed(seed)
    passages = keras.Input((PASSAGE,), dtype="int32", name="passages")
    questions = keras.Input((SENTENCE[1],), dtype="int32", name="questions")
    passage, question, numbers = Renumber(seed, name="numbers")(passages, questions)
    words = keras.layers.Embedding(WORDS, sizes.word_units, name="words")
    d = _read(
        "passage", condition, sizes, passage, words(passage), return_sequences=True
    )  # [batch, time, 2 * units]
    q = _read(
        "question", condition, sizes, question, words(question), mask=question != PADDING
    )  # [batch, 2 * units]

    def term(name: str, vectors):
        product = keras.layers.Dense(2 * sizes.units, use_bias=False, name=name)(vectors)
        return (
            _attention_norm(name)(product)
            if condition.options.get("normalize_attention")
            else product
        )

    similar = term("d_similar", d) * term("q_similar", q)[:, None]
    m = ops.tanh(term("d_match", d) + term("q_match", q)[:, None] + similar)
    attention = ops.softmax(keras.layers.Dense(1, use_bias=False, name="attention")(m)[..., 0], -1)
    read = ops.einsum("bt,btu->bu", attention, d)
    joined = ops.tanh(term("read", read) + term("asked", q) + term("average", ops.mean(d, 1)))
    logits = keras.layers.Dense(ENTITIES, name="entities")(joined)
    model = keras.Model([passages, questions], ops.take_along_axis(logits, numbers, -1))
    for weight in model.trainable_weights:
        if "gain" in condition.options and weight.name in ("scale", "gamma"):
            weight.assign(ops.full_like(weight, condition.options["gain"]))
    return compile_classifier(model, keras.optimizers.Adam(step_size, global_clipnorm=CLIP))


def build_lstm(condition: Condition, units: int, **options: Any) -> keras.layers.RNN:
    """Returns the LSTM of a condition.

    Args:
        condition: Its options are arguments of `RMSNormLSTM`, or of `BatchNormLSTMCell` if
            `normalization` is `batch`.
        units: Size of the states.
        **options: Arguments of `keras.layers.RNN`.
    """
    arguments = {
        name: value for name, value in cell_options(condition).items() if name not in _OF_THE_MODEL
    }
    if arguments["normalization"] != "batch":
        return RMSNormLSTM(units, name="lstm", **arguments, **options)
    del arguments["normalization"]
    return keras.layers.RNN(BatchNormLSTMCell(units, **arguments), name="lstm", **options)


def lstm_inputs(cell: keras.layers.Layer, ids, vectors):
    """Returns what a cell reads, given ids `[batch, time]` and vectors `[batch, time, word_units]`
    of words.

    These are the vectors and, for batch normalization, where there is a word, `[batch, time,
    word_units + 1]`.
    """
    if not isinstance(cell, BatchNormLSTMCell):
        return vectors
    return ops.concatenate([vectors, ops.cast(ids != PADDING, vectors.dtype)[..., None]], -1)


def _read(name: str, condition: Condition, sizes: Sizes, ids, vectors, mask=None, **options):
    """Returns the states of an LSTM in both directions."""
    lstm = build_lstm(condition, sizes.units, **options)
    return keras.layers.Bidirectional(lstm, name=name)(
        lstm_inputs(lstm.cell, ids, vectors), mask=mask
    )


def _attention_norm(name: str) -> keras.layers.Layer:
    gain = keras.initializers.Constant(GAIN)
    return keras.layers.BatchNormalization(
        momentum=0.9, epsilon=EPSILON, gamma_initializer=gain, name=f"{name}_norm"
    )


def _renumbered(ids, numbers):
    """Returns ids `[batch, time]` with the new numbers `[batch, ENTITIES]` of the entities."""
    old = ids - FIRST_ENTITY
    is_entity = (old >= 0) & (old < ENTITIES)
    new = ops.take_along_axis(numbers, ops.clip(old, 0, ENTITIES - 1), -1)
    return ops.where(is_entity, FIRST_ENTITY + ops.cast(new, ids.dtype), ids)
