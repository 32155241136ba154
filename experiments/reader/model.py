"""The network: an attentive reader.

It numbers the names of each example anew in every update.
"""

from typing import Any

import keras
from keras import ops

from rmsnorm_tf import RMSNormLSTM

from ..runs.kinds import EPSILON, cell_options
from ..runs.networks import compile_classifier
from ..runs.run import Condition
from .data import ENTITIES, FIRST_ENTITY, PADDING, PASSAGE, SENTENCE, WORDS

GAIN = 0.1  # initial gain; with 1, the gradient vanishes over time


class StepNormalization(keras.layers.Layer):
    """Normalizes every unit over the words that a batch has at one time step.

        N(x) = (x - mean) / sqrt(variance + epsilon) * gamma + beta

    Padding does not enter the statistics. Inference uses one mean and one variance for all time
    steps: moving averages of the statistics of the time steps, weighted by their numbers of words.

    Args:
        epsilon: Added to the variance, inside the root. Default: 1e-5.
        momentum: Decay of the moving averages at a time step without padding. Default: 0.999.
        center: Whether there is a beta. Default: False.
        **kwargs: Arguments of every Keras layer.

    Reference: Cooijmans et al. 2016, arXiv 1603.09025, equation 5. There, every time step has its
        own moving averages.
    """

    def __init__(
        self, epsilon: float = 1e-5, momentum: float = 0.999, center: bool = False, **kwargs: Any
    ):
        super().__init__(**kwargs)
        self.epsilon = epsilon
        self.momentum = momentum
        self.center = center

    def build(self, input_shape, *_):
        units = (input_shape[-1],)
        few = keras.initializers.Constant(1e-6)  # the weight of the initial variance, 1
        self.gamma = self.add_weight(
            shape=units, initializer=keras.initializers.Constant(GAIN), name="gamma"
        )
        self.beta = (
            self.add_weight(shape=units, initializer="zeros", name="beta") if self.center else None
        )
        self.weight = self.add_weight(shape=(), initializer=few, trainable=False, name="weight")
        self.mean = self.add_weight(shape=units, initializer="zeros", trainable=False, name="mean")
        self.variance = self.add_weight(
            shape=units, initializer=few, trainable=False, name="variance"
        )

    def call(self, inputs, seen, training=False):
        """Normalizes `[batch, units]`, given `[batch, 1]`: 1 at a word, 0 at padding."""
        mean = self.mean / self.weight
        variance = self.variance / self.weight
        if training:
            words = ops.maximum(ops.sum(seen), 1)
            mean = ops.sum(seen * inputs, 0) / words  # [units]
            variance = ops.sum(seen * ops.square(inputs - mean), 0) / words
            rate = (1 - self.momentum) * ops.mean(seen)
            for average, value in (
                (self.weight, 1.0),
                (self.mean, mean),
                (self.variance, variance),
            ):
                average.assign(average + rate * (value - average))
        outputs = (inputs - mean) * (ops.rsqrt(variance + self.epsilon) * self.gamma)
        return outputs if self.beta is None else outputs + self.beta


@keras.saving.register_keras_serializable(package="experiments.reader")
class BatchNormLSTMCell(keras.layers.LSTMCell):
    """Normalizes projected inputs, projected state and cell state of an LSTM over the batch.

        i, f, c~, o = split(N(x W) + N(h U) + b)
        c' = sigmoid(f) * c + sigmoid(i) * tanh(c~)
        h' = sigmoid(o) * tanh(N(c'))

    The inputs are `[batch, inputs + 1]`: x, and 1 where there is a word or 0 at padding. Padding
    does not enter the statistics; `keras.layers.RNN` with a mask ignores the results for it.

    >>> lstm = keras.layers.RNN(BatchNormLSTMCell(4), return_sequences=True)
    >>> lstm(ops.ones((2, 5, 3 + 1))).shape
    TensorShape([2, 5, 4])

    Args:
        units: Size of the states h and c.
        epsilon: Added to the variances, inside the root. Default: 1e-5.
        **kwargs: As in `keras.layers.LSTMCell`, without dropout.

    Reference:
        Cooijmans et al. 2016, arXiv 1603.09025, equations 6 to 8.
    """

    def __init__(self, units: int, epsilon: float = 1e-5, **kwargs: Any):
        super().__init__(units, **kwargs)
        self.epsilon = epsilon
        self.input_norm = StepNormalization(epsilon, name="input_norm")
        self.state_norm = StepNormalization(epsilon, name="state_norm")
        self.carry_norm = StepNormalization(epsilon, center=True, name="carry_norm")

    def build(self, input_shape):
        batch, size = input_shape
        super().build((batch, size - 1))
        for norm, blocks in ((self.input_norm, 4), (self.state_norm, 4), (self.carry_norm, 1)):
            norm.build((batch, blocks * self.units))

    def call(self, inputs, states, training=False):
        h, c = states
        x = inputs[:, :-1]
        seen = inputs[:, -1:]
        of_input = self.input_norm(ops.matmul(x, self.kernel), seen, training=training)
        of_state = self.state_norm(ops.matmul(h, self.recurrent_kernel), seen, training=training)
        i, f, proposal, o = ops.split(of_input + of_state + self.bias, 4, -1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(proposal)
        h = ops.sigmoid(o) * ops.tanh(self.carry_norm(c, seen, training=training))
        return h, [h, c]

    def get_config(self):  # `Bidirectional` copies the cell by it
        return {**super().get_config(), "epsilon": self.epsilon}


UNITS = 64  # of an LSTM of one direction; the paper has 240
WORD_UNITS = 64
CLIP = 10.0  # of the global norm of the gradient
READERS = ("passage", "question")
# Options of a condition that are not arguments of its LSTMs.
_OF_THE_MODEL = ("gain", "normalize_attention")


class Renumber(keras.layers.Layer):
    """Numbers the entities of each example anew, at random, in training.

    Otherwise it keeps their numbers. A call maps ids `[batch, time]` of passages and questions to
    the new ids of both, and to the new number of each entity, `[batch, ENTITIES]`. So the network
    learns nothing about a number.

    Args:
        seed: Seed of the numbers.
        **kwargs: Arguments of every Keras layer.
    """

    def __init__(self, seed: int, **kwargs):
        super().__init__(**kwargs)
        self.generator = keras.random.SeedGenerator(seed)

    def call(self, passages, questions, training=False):
        batch = ops.shape(passages)[0]
        numbers = ops.broadcast_to(ops.arange(ENTITIES, dtype="int32"), (batch, ENTITIES))
        if training:
            numbers = ops.argsort(keras.random.uniform((batch, ENTITIES), seed=self.generator), -1)
        return _renumbered(passages, numbers), _renumbered(questions, numbers), numbers


def build_model(
    condition: Condition,
    step_size: float,
    seed: int,
    units: int = UNITS,
    word_units: int = WORD_UNITS,
) -> keras.Model:
    """Returns the compiled network of a condition.

    It maps passages and questions to logits of the entities.

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
    words = keras.layers.Embedding(WORDS, word_units, name="words")
    # [batch, time, 2 * units] and [batch, 2 * units]
    d = _read("passage", condition, units, passage, words(passage), return_sequences=True)
    q = _read("question", condition, units, question, words(question), mask=question != PADDING)

    def term(name: str, vectors):
        product = keras.layers.Dense(2 * units, use_bias=False, name=name)(vectors)
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
    """Returns what a cell reads, given ids and vectors of words.

    Ids are `[batch, time]`, vectors `[batch, time, word_units]`. These are the vectors and, for
    batch normalization, where there is a word, `[batch, time, word_units + 1]`.
    """
    if not isinstance(cell, BatchNormLSTMCell):
        return vectors
    return ops.concatenate([vectors, ops.cast(ids != PADDING, vectors.dtype)[..., None]], -1)


def _read(name: str, condition: Condition, units: int, ids, vectors, mask=None, **options):
    """Returns the states of an LSTM in both directions."""
    lstm = build_lstm(condition, units, **options)
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
