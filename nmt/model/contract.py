"""Defines the interface of a translation model for the rest of `nmt`.

`registry.py` builds one from a configuration.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import keras
import tensorflow as tf

# Structures of tensors: `[rows, ...]`, of which search selects and reorders the rows of each
# sentence, and `[batch, ...]`, which all hypotheses of a sentence share and nothing reorders.
State = Any
Memory = Any


class NextWords(NamedTuple):
    """The scores of every next word. The log-probability of a word is its logit minus the
    normalizer.

    Search needs the normalized values of few words only, so the subtraction is left to it.
    """

    logits: tf.Tensor  # [rows, target_words]
    normalizers: tf.Tensor  # [rows]


DecodeStep = Callable[[tf.Tensor, State, Memory], tuple[NextWords, State, Memory]]


class Decodable(Protocol):
    """A model of the probability of a target sentence given a source sentence: what scoring and
    search need.

    Sentences are rows of token ids, `[batch, source_time]` and `[batch, target_time]`. Id 0 ends a
    sentence and pads it. A mask has the shape of its ids: 1.0 on words and on the one end after
    them, 0.0 elsewhere. All costs are negative log-probabilities in nats, in float32.

    A model may also have these methods; callers check whether it does:

    - `attention(source, source_mask, target)` returns how much each target word attends to each
      source word, `[batch, target_time, source_time]`, and 0 on padding of the source. With
      `attention_layers`, a number, it takes a `layer` from 1 to that too.
    - `ctranslate2_spec(longest)` returns a `ctranslate2.specs.SequenceToSequenceModelSpec` without
      vocabularies, for at most `longest` tokens of a sentence or a translation with its end.
    """

    first_word: int  # the id that a step takes at first, instead of a previous word
    # All weights, which a checkpoint holds; each has a unique `path`
    variables: list[keras.Variable]

    def word_costs(
        self, source: tf.Tensor, source_mask: tf.Tensor, target: tf.Tensor, target_mask: tf.Tensor
    ) -> tf.Tensor:
        """Returns the cost of each target word and end, `[batch, target_time]`, 0 on padding.

        Shapes may be dynamic.
        """

    def encode(self, source: tf.Tensor, source_mask: tf.Tensor) -> tuple[State, Memory]:
        """Returns the state before the first word and the memory, `[batch, ...]`."""

    def step_weights(self) -> Any:
        """Returns tensors that depend on the weights alone and that every step reads.

        A caller that translates often keeps them, until the weights change.
        """

    def make_step(self, weights: Any = None) -> DecodeStep:
        """Returns the function of a decoding step. What all steps share is computed by this call,
        outside of the loop; `weights` are those of `step_weights`, if the caller has kept them.

        The function maps the last words `[rows]`, their state and the memory to the next words, the
        next state and the next memory. There is one row for each hypothesis, and each sentence has
        equally many: row `i * hypotheses + j` is hypothesis j of sentence i. All steps have equally
        many, or the first has one. A row of the state is one that the step before returned for the
        same sentence, or that of `encode` at the first step.
        """


class TranslationModel(Decodable, Protocol):
    """A model that can be trained too."""

    trainable_variables: list[keras.Variable]  # the weights that have a gradient
    # Of each side, those with a row for each word, and perhaps more.
    word_tables: dict[str, list[keras.Variable]]

    def total_cost(
        self,
        source: tf.Tensor,
        source_mask: tf.Tensor,
        target: tf.Tensor,
        target_mask: tf.Tensor,
        *,
        label_smoothing: float,
        dropout_seed: tf.Tensor | None,
    ) -> tf.Tensor:
        """Returns the summed cost of a batch, a scalar, to be differentiated. Batch and time may be
        unknown sizes.

        Args:
            source: `[batch, source_time]` ids.
            source_mask: `[batch, source_time]`.
            target: `[batch, target_time]` ids.
            target_mask: `[batch, target_time]`; all zero in a row that only fills the batch.
            label_smoothing: Probability taken from the right word and spread evenly over the
                vocabulary. The model decides whether the right word gets a part of it too.
            dropout_seed: `[2]` integers of 32 bits that decide all dropout, or `None` for no
                dropout.
        """
