"""`RMSNormGRU` and `RMSNormLSTM`, which project the inputs of all time steps at once."""

import functools
import types
from typing import Any

import keras
from keras import ops

from rmsnorm_tf.recurrent.cells import RMSNormGRUCell, RMSNormLSTMCell


class _NormalizedRNN(keras.layers.RNN):
    """Runs a cell over time, and gives it the layer's remaining arguments."""

    cell_class: type

    def __init__(
        self,
        units: int,
        *arguments: Any,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
        activity_regularizer: Any = None,
        name: str | None = None,
        dtype: Any = None,
        trainable: bool = True,
        **cell_arguments: Any,
    ) -> None:
        super().__init__(
            self.cell_class(
                units, *arguments, name="cell", dtype=dtype, trainable=trainable, **cell_arguments
            ),
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
        self.supports_masking = True
        self.units = self.cell.units

    def inner_loop(self, sequences: Any, initial_state: Any, mask: Any, training: bool = False):
        needed = keras.tree.flatten(self.cell.state_size)
        given = len(keras.tree.flatten(initial_state))
        if given != len(needed):
            raise ValueError(
                f"{self.name} has {len(needed)} states of sizes {needed}, got {given} as its "
                "initial state. Pass a list of all of them."
            )
        # The loop puts time first. If it is first already, TensorFlow removes both transpositions
        # from a graph.
        projected = self.cell.project(ops.swapaxes(sequences, 0, 1), training)
        # Keras's loop reads these attributes of its layer; a real one would be built in each call.
        loop = types.SimpleNamespace(
            cell=functools.partial(self.cell.step, training=training),
            return_sequences=self.return_sequences,
            go_backwards=self.go_backwards,
            stateful=self.stateful,
            unroll=self.unroll,
            zero_output_for_mask=self.zero_output_for_mask,
        )
        projected = ops.swapaxes(projected, 0, 1)  # [batch, time, n * units]
        return keras.layers.RNN.inner_loop(loop, projected, initial_state, mask)

    def get_config(self) -> dict[str, Any]:
        config = {**self.cell.get_config(), **super().get_config()}
        del config["cell"]
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]):
        return cls(**config)


@keras.saving.register_keras_serializable(package="rmsnorm_tf")
class RMSNormGRU(_NormalizedRNN):
    """`RMSNormGRUCell` over time; projects and normalizes the inputs of all time steps at once.

    >>> gru = RMSNormGRU(4, return_sequences=True)
    >>> tuple(gru(keras.ops.ones((2, 5, 3))).shape)
    (2, 5, 4)
    >>> encoder = keras.layers.Bidirectional(RMSNormGRU(4, normalization="layer", dropout=0.2))
    >>> tuple(encoder(keras.ops.ones((2, 5, 3))).shape)
    (2, 8)

    Args:
        units: The size of the state.
        *arguments: By position, those that follow in `keras.layers.GRU`, such as an activation.
        return_sequences: Whether to return the outputs of all time steps, `[batch, time, units]`,
            or the last one. Default: False.
        return_state: Whether to return the last state too. Default: False.
        go_backwards: Whether to read the sequence from its end. Default: False.
        stateful: Whether a batch starts with the last states of the one before. Default: False.
        unroll: Whether to write the steps out in place of a loop. Default: False.
        zero_output_for_mask: Whether the output of a masked step is zero. Default: False.
        activity_regularizer: For the output. Default: None.
        name: Of the layer. Default: None, made from the class.
        dtype: A dtype or a policy. Default: None, the global policy.
        trainable: Whether the weights are trained. Default: True.
        **cell_arguments: Those of `RMSNormGRUCell`, with its defaults:
            normalization="rms", partial=None, epsilon=1e-6, normalize_bias=False;
            activation="tanh", recurrent_activation="sigmoid", use_bias=True,
            kernel_initializer="glorot_uniform", recurrent_initializer="orthogonal",
            bias_initializer="zeros", kernel_regularizer=None, recurrent_regularizer=None,
            bias_regularizer=None, kernel_constraint=None, recurrent_constraint=None,
            bias_constraint=None, dropout=0.0, recurrent_dropout=0.0, seed=None, reset_after=True.

    Raises:
        ValueError: An argument is out of its range.

    Reference:
        As for `RMSNormGRUCell`.
    """

    cell_class = RMSNormGRUCell


@keras.saving.register_keras_serializable(package="rmsnorm_tf")
class RMSNormLSTM(_NormalizedRNN):
    """`RMSNormLSTMCell` over time; projects and normalizes the inputs of all time steps at once.

    >>> lstm = RMSNormLSTM(4, normalize_carry=True)
    >>> tuple(lstm(keras.ops.ones((2, 5, 3))).shape)
    (2, 4)

    Args:
        units: The size of the states.
        *arguments: By position, those that follow in `keras.layers.LSTM`, such as an activation.
        return_sequences: Whether to return the outputs of all time steps, `[batch, time, units]`,
            or the last one. Default: False.
        return_state: Whether to return the last state too. Default: False.
        go_backwards: Whether to read the sequence from its end. Default: False.
        stateful: Whether a batch starts with the last states of the one before. Default: False.
        unroll: Whether to write the steps out in place of a loop. Default: False.
        zero_output_for_mask: Whether the output of a masked step is zero. Default: False.
        activity_regularizer: For the output. Default: None.
        name: Of the layer. Default: None, made from the class.
        dtype: A dtype or a policy. Default: None, the global policy.
        trainable: Whether the weights are trained. Default: True.
        **cell_arguments: Those of `RMSNormLSTMCell`, with its defaults:
            normalization="rms", partial=None, epsilon=1e-6, normalize_bias=False,
            normalize_carry=False; activation="tanh", recurrent_activation="sigmoid", use_bias=True,
            kernel_initializer="glorot_uniform", recurrent_initializer="orthogonal",
            bias_initializer="zeros", unit_forget_bias=True, kernel_regularizer=None,
            recurrent_regularizer=None, bias_regularizer=None, kernel_constraint=None,
            recurrent_constraint=None, bias_constraint=None, dropout=0.0, recurrent_dropout=0.0,
            seed=None.

    Raises:
        ValueError: An argument is out of its range.

    Reference:
        As for `RMSNormLSTMCell`.
    """

    cell_class = RMSNormLSTMCell
