"""`RMSNormGRU` and `RMSNormLSTM`: recurrent layers that project their inputs for all time steps at once."""

from typing import Any

import keras
import tensorflow as tf

from rmsnorm_tf.recurrent import RMSNormGRUCell, RMSNormLSTMCell


class _Steps:
    """A cell for `keras.layers.RNN` that is fed with projected inputs."""

    def __init__(self, cell, training):
        self.cell, self.training, self.state_size = cell, training, cell.state_size

    def call(self, inputs, states):
        return self.cell.step(inputs, states, self.training)

    __call__ = call


def _exchange_batch_and_time(t):
    return tf.transpose(t, [1, 0, 2])


class _NormalizedRNN(keras.layers.RNN):
    """A layer around a cell that hands on its arguments and projects the inputs of all time steps at once."""

    cell_class: type

    def __init__(
        self,
        units: int,
        *,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
        use_cudnn: str | bool = "auto",
        activity_regularizer: Any = None,
        name: str | None = None,
        dtype: Any = None,
        trainable: bool = True,
        **cell_arguments: Any,
    ) -> None:
        if use_cudnn not in ("auto", False):
            raise ValueError(
                f'use_cudnn must be "auto" or False, got {use_cudnn!r}: cuDNN has no norm inside. Drop it.'
            )
        super().__init__(
            self.cell_class(units, name="cell", dtype=dtype, trainable=trainable, **cell_arguments),
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            unroll=unroll,
            zero_output_for_mask=zero_output_for_mask,
            activity_regularizer=activity_regularizer,
            name=name,
            dtype=dtype,
            trainable=trainable,
        )
        self.input_spec = keras.layers.InputSpec(ndim=3)

    @property
    def units(self) -> int:
        return self.cell.units

    def inner_loop(self, sequences: tf.Tensor, initial_state: Any, mask: tf.Tensor | None, training: bool = False):
        loop = keras.layers.RNN(
            _Steps(self.cell, training),
            return_sequences=self.return_sequences,
            go_backwards=self.go_backwards,
            unroll=self.unroll,
            zero_output_for_mask=self.zero_output_for_mask,
            name=self.name,
        )
        # The loop puts time first. Where it is first already, a graph drops both transpositions.
        projected = self.cell.project(_exchange_batch_and_time(sequences), training)
        projected = keras.tree.map_structure(_exchange_batch_and_time, projected)  # [batch, time, ...]
        return loop.inner_loop(projected, initial_state, mask)

    def get_config(self) -> dict[str, Any]:
        config = {**self.cell.get_config(), **super().get_config()}
        del config["cell"]
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]):
        return cls(**config)


@keras.saving.register_keras_serializable(package="rmsnorm_tf")
class RMSNormGRU(_NormalizedRNN):
    """`RMSNormGRUCell` over time, with the inputs projected and normalized for all time steps at once.

    >>> gru = RMSNormGRU(4, return_sequences=True)
    >>> gru(tf.ones((2, 5, 3))).shape
    TensorShape([2, 5, 4])
    >>> encoder = keras.layers.Bidirectional(RMSNormGRU(4, normalization="layer", dropout=0.2))
    >>> encoder(tf.ones((2, 5, 3))).shape
    TensorShape([2, 8])

    Args:
        units: Size of the state.
        return_sequences: Whether to return the outputs of all time steps, `[batch, time, units]`, not that of the last.
        return_state: Whether to return the last state as well.
        go_backwards: Whether to start at the last time step, and to return the outputs in that order.
        stateful: Whether a batch begins with the states that the one before it ended with.
        unroll: Whether to write the loop out, which needs a known number of time steps.
        zero_output_for_mask: Whether a masked time step gives zeros, and not the output before it.
        use_cudnn: "auto" (default) or False, which are the same: cuDNN has no kernel with a norm inside.
        activity_regularizer: For the output.
        name: Of the layer.
        dtype: Of the layer, or its policy.
        trainable: Whether the weights are.
        **cell_arguments: Of `RMSNormGRUCell`, and so of `keras.layers.GRU`.

    Raises:
        ValueError: An argument is out of its range.

    Reference:
        As for `RMSNormGRUCell`.
    """

    cell_class = RMSNormGRUCell


@keras.saving.register_keras_serializable(package="rmsnorm_tf")
class RMSNormLSTM(_NormalizedRNN):
    """`RMSNormLSTMCell` over time, with the inputs projected and normalized for all time steps at once.

    >>> lstm = RMSNormLSTM(4, normalize_carry=True)
    >>> lstm(tf.ones((2, 5, 3))).shape
    TensorShape([2, 4])

    Args:
        units: Size of the states.
        **kwargs: As in `RMSNormGRU`, and those of `RMSNormLSTMCell`, and so of `keras.layers.LSTM`.

    Raises:
        ValueError: An argument is out of its range.

    Reference:
        As for `RMSNormLSTMCell`.
    """

    cell_class = RMSNormLSTMCell
