"""Defines recurrent cells with a normalization inside.

The cells extend the cells of Keras, with the same `kernel`, `recurrent_kernel` and `bias`. Vectors
are rows, `x W`. W, U and b are the blocks of the three weights. N is the normalization, `N(a) = a /
rms(a) * gain`; each N has its own gain.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import keras
from keras import ops

from rmsnorm_tf.norm.arguments import check_epsilon, check_flag, check_partial
from rmsnorm_tf.norm.backend import tensors
from rmsnorm_tf.norm.layer import RMSNormalization

Output = tuple[Any, Any]

if TYPE_CHECKING:
    from keras.layers import GRUCell as _Cell
else:
    _Cell = object


class _NormalizedCell(_Cell):
    """Adds norms to a cell of Keras, which it precedes among the base classes.

    A cell has two parts: `project` computes what depends on the inputs alone, for one time step or
    for all, and `step` the rest.
    """

    # The size of each norm, by name, in multiples of `units`.
    norm_sizes: ClassVar[dict[str, int]]

    # The sizes, in multiples of `units`, of the blocks of a kernel's columns that are normalized
    # separately.
    kernel_blocks: tuple[int, ...]

    def __init__(
        self,
        units: int,
        *arguments: Any,
        normalization: str | None = "rms",
        partial: float | None = None,
        epsilon: float = 1e-6,
        normalize_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, *arguments, **kwargs)
        if normalization not in ("rms", "layer", None):
            raise ValueError(
                f'normalization must be "rms", "layer" or None, got {normalization!r}. '
                "Pass one of them."
            )
        if partial is not None and normalization != "rms":
            raise ValueError(
                f'partial={partial} needs normalization="rms", got {normalization!r}. '
                "Drop one of the two arguments."
            )
        self.normalization = normalization
        self.partial = check_partial(partial, -1)
        self.epsilon = check_epsilon(epsilon)
        self.normalize_bias = check_flag("normalize_bias", normalize_bias)
        # One mask for the inputs and one for the state. Keras has one per gate if there is
        # recurrent dropout.
        self.dropout_mask_count = None
        for name in self.norm_sizes:
            setattr(self, name, self._make_norm(name))

    def build(self, input_shape: Sequence[int | None]) -> None:
        super().build(input_shape)
        for name, size in self.norm_sizes.items():
            getattr(self, name).build((None, size * self.units))

    def call(self, inputs: Any, states: Any = None, training: bool = False) -> Output:
        if states is None:
            raise TypeError(
                f"{self.name} computes one time step and needs states. "
                "Put it into keras.layers.RNN."
            )
        return self.step(self.project(inputs, training), states, training)

    def project(self, inputs: Any, training: bool = False) -> Any:
        """Projects inputs `[..., inputs]` to `[..., n * units]`."""
        inputs = self._drop_inputs(inputs, training)
        if len(inputs.shape) == 2:
            return self._project(inputs)
        # As rows, because Keras's LayerNormalization takes only the rank that it was built for.
        projected = self._project(ops.reshape(inputs, [-1, self.kernel.shape[0]]))
        return ops.reshape(projected, [*ops.shape(inputs)[:-1], projected.shape[-1]])

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "normalization": self.normalization,
            "partial": self.partial,
            "epsilon": self.epsilon,
            "normalize_bias": self.normalize_bias,
        }

    def _make_norm(self, name):
        # The cell's bias is the offset of all other norms.
        center = name == "carry_norm" and self.use_bias
        common = {"name": name, "dtype": self.dtype_policy}
        if self.normalization is None:
            return keras.layers.Identity(**common)
        if self.normalization == "layer":
            return keras.layers.LayerNormalization(epsilon=self.epsilon, center=center, **common)
        return RMSNormalization(epsilon=self.epsilon, partial=self.partial, center=center, **common)

    def _drop_inputs(self, inputs, training):
        """Applies dropout to `[batch, inputs]` or, with one mask, to `[time, batch, inputs]`."""
        inputs = ops.cast(inputs, self.compute_dtype)
        if not training or not self.dropout:
            return inputs
        return inputs * self.get_dropout_mask(inputs if len(inputs.shape) == 2 else inputs[0])

    def _drop_state(self, state, training):
        return (
            state * self.get_recurrent_dropout_mask(state)
            if training and self.recurrent_dropout
            else state
        )

    def _split(self, t):
        return tensors.split_last_axis(
            ops.convert_to_tensor(t), [size * self.units for size in self.kernel_blocks]
        )

    def _normalize(self, x, norm, bias):
        if bias is None:
            return norm(x)
        return norm(x + bias) if self.normalize_bias else norm(x) + bias


@keras.saving.register_keras_serializable(package="rmsnorm_tf")
class RMSNormSimpleRNNCell(_NormalizedCell, keras.layers.SimpleRNNCell):
    """A fully connected recurrent cell that normalizes the sum of its projected input and state.

        h' = tanh(N(x W + h U) + b)

    >>> rnn = keras.layers.RNN(RMSNormSimpleRNNCell(4), return_sequences=True)
    >>> tuple(rnn(keras.ops.ones((2, 5, 3))).shape)
    (2, 5, 4)

    Args:
        units: The size of the state h.
        *arguments: By position, those that follow in `keras.layers.SimpleRNNCell`.
        normalization: "rms", "layer" for LayerNorm, or None for that of Keras. Default: "rms".
        partial: p in (0, 1]; "rms" takes only the first `ceil(size * p)` entries, or with None all.
            Default: None.
        epsilon: Added to the mean square or the variance, inside the root. Default: 1e-6.
        normalize_bias: Whether to normalize sums with biases, `N(x W + b)`, as Nematus does.
            Default: False.
        **kwargs: As in `keras.layers.SimpleRNNCell`, with its defaults:
            activation="tanh", use_bias=True, kernel_initializer="glorot_uniform",
            recurrent_initializer="orthogonal", bias_initializer="zeros", kernel_regularizer=None,
            recurrent_regularizer=None, bias_regularizer=None, kernel_constraint=None,
            recurrent_constraint=None, bias_constraint=None, dropout=0.0, recurrent_dropout=0.0,
            seed=None.
            One dropout mask is drawn per sequence.

    Raises:
        ValueError: An argument is out of its range.

    Reference:
        Ba et al. 2016, arXiv 1607.06450, equation 4; Zhang & Sennrich 2019, arXiv 1910.07467.
    """

    norm_sizes: ClassVar[dict[str, int]] = {"norm": 1}
    kernel_blocks = (1,)

    def _project(self, inputs):
        return ops.matmul(inputs, self.kernel)

    def step(self, projected: Any, states: Any, training: bool = False) -> Output:
        """Computes the output and the new states, from what `project` returned."""
        [h] = keras.tree.flatten(states)
        summed = projected + ops.matmul(self._drop_state(h, training), self.recurrent_kernel)
        h = self.activation(self._normalize(summed, self.norm, self.bias))
        return h, keras.tree.pack_sequence_as(states, [h])


@keras.saving.register_keras_serializable(package="rmsnorm_tf")
class RMSNormGRUCell(_NormalizedCell, keras.layers.GRUCell):
    """A gated recurrent unit that normalizes projected input and state separately.

        z, r = split(sigmoid(N(x W_zr) + b_zr + N(h U_zr) + b'_zr))
        h~   = tanh(N(x W_h) + b_h + r * (N(h U_h) + b'_h))
        h'   = z * h + (1 - z) * h~

    The biases are the offsets of the four norms in Ba et al. With `reset_after=False` there is no
    b', and `N((r * h) U_h)` replaces `r * N(h U_h)`.

    >>> rnn = keras.layers.RNN([RMSNormGRUCell(4), RMSNormGRUCell(6)])
    >>> tuple(rnn(keras.ops.ones((2, 5, 3))).shape)
    (2, 6)

    Args:
        units: The size of the state h.
        *arguments: By position, those that follow in `keras.layers.GRUCell`.
        normalization: "rms", "layer" for LayerNorm, or None for that of Keras. Default: "rms".
        partial: p in (0, 1]; "rms" takes only the first `ceil(size * p)` entries, or with None all.
            Default: None.
        epsilon: Added to the mean square or the variance, inside the root. Default: 1e-6.
        normalize_bias: Whether to normalize sums with biases, `N(x W + b)`, as Nematus does.
            Default: False.
        **kwargs: As in `keras.layers.GRUCell`, with its defaults:
            activation="tanh", recurrent_activation="sigmoid", use_bias=True,
            kernel_initializer="glorot_uniform", recurrent_initializer="orthogonal",
            bias_initializer="zeros", kernel_regularizer=None, recurrent_regularizer=None,
            bias_regularizer=None, kernel_constraint=None, recurrent_constraint=None,
            bias_constraint=None, dropout=0.0, recurrent_dropout=0.0, seed=None, reset_after=True.
            The gates share one dropout mask per sequence.

    Raises:
        ValueError: An argument is out of its range.

    Reference:
        Ba et al. 2016, arXiv 1607.06450, supplement, equations 17 to 31, with z and 1 - z
        exchanged; Zhang & Sennrich 2019, arXiv 1910.07467.
    """

    norm_sizes: ClassVar[dict[str, int]] = {
        "input_gates_norm": 2,
        "input_proposal_norm": 1,
        "state_gates_norm": 2,
        "state_proposal_norm": 1,
    }
    kernel_blocks = (2, 1)

    def _project(self, inputs):
        gates_kernel, proposal_kernel = self._split(self.kernel)
        (gates_bias, proposal_bias), _ = self._biases()
        gates = ops.matmul(inputs, gates_kernel)
        proposal = ops.matmul(inputs, proposal_kernel)
        normalized = [
            self._normalize(gates, self.input_gates_norm, gates_bias),
            self._normalize(proposal, self.input_proposal_norm, proposal_bias),
        ]
        return ops.concatenate(normalized, -1)

    def step(self, projected: Any, states: Any, training: bool = False) -> Output:
        """Computes the output and the new states, from what `project` returned."""
        [h] = keras.tree.flatten(states)
        gates_of_input, proposal_of_input = self._split(projected)
        dropped = self._drop_state(h, training)
        _, (gates_bias, proposal_bias) = self._biases()
        if self.reset_after:
            gates, proposal = self._split(ops.matmul(dropped, self.recurrent_kernel))
        else:
            gates_kernel, proposal_kernel = self._split(self.recurrent_kernel)
            gates = ops.matmul(dropped, gates_kernel)
        gates = gates_of_input + self._normalize(gates, self.state_gates_norm, gates_bias)
        z, r = ops.split(self.recurrent_activation(gates), 2, -1)
        if self.reset_after:
            proposal = r * self._normalize(proposal, self.state_proposal_norm, proposal_bias)
        else:
            proposal = self.state_proposal_norm(ops.matmul(r * dropped, proposal_kernel))
        proposal = self.activation(proposal_of_input + proposal)
        h = proposal + z * (h - proposal)
        return h, keras.tree.pack_sequence_as(states, [h])

    def _biases(self):
        """Returns the biases of gates and proposal: for the inputs, and for the state."""
        if not self.use_bias:
            return (None, None), (None, None)
        if not self.reset_after:
            return self._split(self.bias), (None, None)
        of_input, of_state = ops.unstack(ops.convert_to_tensor(self.bias))
        return self._split(of_input), self._split(of_state)


@keras.saving.register_keras_serializable(package="rmsnorm_tf")
class RMSNormLSTMCell(_NormalizedCell, keras.layers.LSTMCell):
    """A long short-term memory that normalizes projected input and state, and the cell state.

        i, f, c~, o = split(N(x W) + b + N(h U))
        c' = sigmoid(f) * c + sigmoid(i) * tanh(c~)
        h' = sigmoid(o) * tanh(N(c'))

    With `use_bias`, the normalization of c' has an offset of its own.

    >>> rnn = keras.layers.RNN(RMSNormLSTMCell(4), return_state=True)
    >>> [tuple(t.shape) for t in rnn(keras.ops.ones((2, 5, 3)))]
    [(2, 4), (2, 4), (2, 4)]

    Args:
        units: The size of the states h and c.
        *arguments: By position, those that follow in `keras.layers.LSTMCell`.
        normalization: "rms", "layer" for LayerNorm, or None for that of Keras. Default: "rms".
        partial: p in (0, 1]; "rms" takes only the first `ceil(size * p)` entries, or with None all.
            Default: None.
        epsilon: Added to the mean square or the variance, inside the root. Default: 1e-6.
        normalize_bias: Whether to normalize sums with biases, `N(x W + b)`, as Nematus does.
            Default: False.
        normalize_carry: Whether the next step gets `N(c')` instead of c', as in TensorFlow Addons.
            Default: False.
        **kwargs: As in `keras.layers.LSTMCell`, with its defaults:
            activation="tanh", recurrent_activation="sigmoid", use_bias=True,
            kernel_initializer="glorot_uniform", recurrent_initializer="orthogonal",
            bias_initializer="zeros", unit_forget_bias=True, kernel_regularizer=None,
            recurrent_regularizer=None, bias_regularizer=None, kernel_constraint=None,
            recurrent_constraint=None, bias_constraint=None, dropout=0.0, recurrent_dropout=0.0,
            seed=None.
            The gates share one dropout mask per sequence.

    Raises:
        ValueError: An argument is out of its range.

    Reference:
        Ba et al. 2016, arXiv 1607.06450, supplement, equations 17 to 31; Zhang & Sennrich 2019,
        arXiv 1910.07467.
    """

    norm_sizes: ClassVar[dict[str, int]] = {"input_norm": 4, "state_norm": 4, "carry_norm": 1}
    kernel_blocks = (4,)

    def __init__(
        self,
        units: int,
        *arguments: Any,
        normalization: str | None = "rms",
        partial: float | None = None,
        epsilon: float = 1e-6,
        normalize_bias: bool = False,
        normalize_carry: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            units,
            *arguments,
            normalization=normalization,
            partial=partial,
            epsilon=epsilon,
            normalize_bias=normalize_bias,
            **kwargs,
        )
        self.normalize_carry = check_flag("normalize_carry", normalize_carry)

    def _project(self, inputs):
        return self._normalize(ops.matmul(inputs, self.kernel), self.input_norm, self.bias)

    def step(self, projected: Any, states: Any, training: bool = False) -> Output:
        """Computes the output and the new states, from what `project` returned."""
        h, c = states
        of_state = self.state_norm(ops.matmul(self._drop_state(h, training), self.recurrent_kernel))
        i, f, proposal, o = ops.split(projected + of_state, 4, -1)
        c = self.recurrent_activation(f) * c + self.recurrent_activation(i) * self.activation(
            proposal
        )
        normalized = self.carry_norm(c)
        h = self.recurrent_activation(o) * self.activation(normalized)
        return h, [h, normalized if self.normalize_carry else c]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "normalize_carry": self.normalize_carry}
