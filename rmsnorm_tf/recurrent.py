"""Recurrent cells with a normalization inside.

The cells extend those of Keras: `kernel`, `recurrent_kernel` and `bias` are theirs, and so are all arguments that are
not explained here. Row vectors throughout, `x W`; W, U and b are the blocks of the three weights, and N is the
normalization, `N(a) = a / rms(a) * gain`, every time with a gain of its own.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from rmsnorm_tf.equation import check_epsilon, check_flag, check_partial
from rmsnorm_tf.rms_normalization import RMSNormalization

Output = tuple[tf.Tensor, Any]


class GRUInputs(NamedTuple):
    """The inputs' side of a GRU, `[..., 2 * units]` and `[..., units]`."""

    gates: tf.Tensor
    proposal: tf.Tensor

    @property
    def shape(self) -> tf.TensorShape:
        """Its last size apart, that of both; `keras.layers.RNN` asks for the number of time steps."""
        return self.gates.shape


class _NormalizedCell:
    """What the cells share: norms, dropout, config. It stands before a cell of Keras among the base classes.

    A cell is two functions: `project` does what depends on the inputs alone, `step` the rest.
    """

    # The norms by name, each with its size in multiples of `units`.
    norm_sizes: dict[str, int]

    # The sizes of the blocks of a kernel's columns that are normalized on their own, likewise.
    kernel_blocks: tuple[int, ...]

    def __init__(
        self,
        units: int,
        *,
        normalization: str | None = "rms",
        partial: float | None = None,
        epsilon: float = 1e-6,
        normalize_bias: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(units, **kwargs)
        if normalization not in ("rms", "layer", None):
            raise ValueError(f'normalization must be "rms", "layer" or None, got {normalization!r}. Pass one of them.')
        if partial is not None and normalization != "rms":
            raise ValueError(
                f'partial={partial} needs normalization="rms", got {normalization!r}. Drop one of the two arguments.'
            )
        self.normalization = normalization
        self.partial = check_partial(partial, -1)
        self.epsilon = check_epsilon(epsilon)
        self.normalize_bias = check_flag("normalize_bias", normalize_bias)
        # One mask a side. Keras has one for each gate where the state is dropped.
        self.dropout_mask_count = None
        for name in self.norm_sizes:
            setattr(self, name, self._make_norm(name))

    def build(self, input_shape: Sequence[int | None]) -> None:
        super().build(input_shape)
        for name, size in self.norm_sizes.items():
            getattr(self, name).build((None, size * self.units))

    def call(self, inputs: tf.Tensor, states: Any, training: bool = False) -> Output:
        return self.step(self.project(inputs, training), states, training)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "normalization": self.normalization,
            "partial": self.partial,
            "epsilon": self.epsilon,
            "normalize_bias": self.normalize_bias,
        }

    def _make_norm(self, name):
        # The cell's bias is the offset of all norms but this one.
        center = name == "carry_norm" and self.use_bias
        common = {"name": name, "dtype": self.dtype_policy}
        if self.normalization is None:
            return keras.layers.Identity(**common)
        if self.normalization == "layer":
            return keras.layers.LayerNormalization(epsilon=self.epsilon, center=center, **common)
        return RMSNormalization(epsilon=self.epsilon, partial=self.partial, center=center, **common)

    def _drop_inputs(self, inputs, training):
        """Applies this batch's mask to `[batch, inputs]` or `[time, batch, inputs]`, which may be integers."""
        inputs = tf.cast(inputs, self.compute_dtype)
        if not training or not self.dropout:
            return inputs
        return inputs * self.get_dropout_mask(inputs if inputs.shape.rank == 2 else inputs[0])

    def _drop_state(self, state, training):
        return state * self.get_recurrent_dropout_mask(state) if training and self.recurrent_dropout else state

    def _split(self, t):
        return tf.split(t, [size * self.units for size in self.kernel_blocks], -1)

    def _normalize(self, x, norm, bias):
        if bias is None:
            return norm(x)
        return norm(x + bias) if self.normalize_bias else norm(x) + bias


def _matmul(x, kernel):
    """`x W` over the last axis of `[..., inputs]`, as one matrix product."""
    return tf.tensordot(x, tf.convert_to_tensor(kernel), 1)


@keras.saving.register_keras_serializable(package="rmsnorm_tf")
class RMSNormSimpleRNNCell(_NormalizedCell, keras.layers.SimpleRNNCell):
    """A fully connected recurrent unit that normalizes its summed inputs.

        h' = tanh(N(x W + h U) + b)

    >>> rnn = keras.layers.RNN(RMSNormSimpleRNNCell(4), return_sequences=True)
    >>> rnn(tf.ones((2, 5, 3))).shape
    TensorShape([2, 5, 4])

    Args:
        units: Size of the state h.
        normalization: "rms" (default), "layer" for LayerNorm, or None, which makes this `keras.layers.SimpleRNNCell`.
        partial: p in (0, 1]; an "rms" takes the first `ceil(size * p)` entries only. None (default) takes all.
        epsilon: Added to the mean square or the variance, inside the root. Default: 1e-6.
        normalize_bias: Whether the bias is added before the normalization, not after. Default: False.
        **kwargs: As in `keras.layers.SimpleRNNCell`. A dropout mask is drawn once per sequence.

    Raises:
        ValueError: An argument is out of its range.

    Reference:
        Ba et al. 2016, arXiv 1607.06450, equation 4; Zhang & Sennrich 2019, arXiv 1910.07467.
    """

    norm_sizes = {"norm": 1}  # noqa: RUF012
    kernel_blocks = (1,)

    def project(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns the inputs' side, `[..., units]` for `[..., inputs]`."""
        return _matmul(self._drop_inputs(inputs, training), self.kernel)

    def step(self, projected: tf.Tensor, states: Any, training: bool = False) -> Output:
        """Returns the output and the new states from what `project` returned for this time step."""
        [h] = keras.tree.flatten(states)
        summed = projected + tf.matmul(self._drop_state(h, training), self.recurrent_kernel)
        h = self.activation(self._normalize(summed, self.norm, self.bias))
        return h, keras.tree.pack_sequence_as(states, [h])


@keras.saving.register_keras_serializable(package="rmsnorm_tf")
class RMSNormGRUCell(_NormalizedCell, keras.layers.GRUCell):
    """A gated recurrent unit that normalizes each side of its gates and of its proposal on its own.

        z, r = split(sigmoid(N(x W_zr) + b_zr + N(h U_zr) + b'_zr))
        h~   = tanh(N(x W_h) + b_h + r * (N(h U_h) + b'_h))
        h'   = z * h + (1 - z) * h~

    So the biases are what Ba et al. call the offsets of the four norms. With `reset_after=False` there is no b', and
    `N((r * h) U_h)` is in the place of `r * N(h U_h)`.

    >>> rnn = keras.layers.RNN([RMSNormGRUCell(4), RMSNormGRUCell(6)])
    >>> rnn(tf.ones((2, 5, 3))).shape
    TensorShape([2, 6])

    Args:
        units: Size of the state h.
        normalization: "rms" (default), "layer" for LayerNorm, or None, which makes this `keras.layers.GRUCell`.
        partial: p in (0, 1]; an "rms" takes the first `ceil(size * p)` entries only. None (default) takes all.
        epsilon: Added to the mean square or the variance, inside the root. Default: 1e-6.
        normalize_bias: Whether biases are added before the normalization, as in Nematus and the reference code of
            RMSNorm: `N(x W + b)`. Default: False.
        **kwargs: As in `keras.layers.GRUCell`. A dropout mask is drawn once per sequence, and shared by the gates.

    Raises:
        ValueError: An argument is out of its range.

    Reference:
        Ba et al. 2016, arXiv 1607.06450, supplement, equations 17 to 31, where z and 1 - z change places; Zhang &
        Sennrich 2019, arXiv 1910.07467.
    """

    norm_sizes = {"input_gates_norm": 2, "input_proposal_norm": 1, "state_gates_norm": 2, "state_proposal_norm": 1}  # noqa: RUF012
    kernel_blocks = (2, 1)

    def project(self, inputs: tf.Tensor, training: bool = False) -> GRUInputs:
        """Returns the inputs' side of gates and proposal for `[..., inputs]`."""
        inputs = self._drop_inputs(inputs, training)
        gates_kernel, proposal_kernel = self._split(self.kernel)
        (gates_bias, proposal_bias), _ = self._biases()
        return GRUInputs(
            self._normalize(_matmul(inputs, gates_kernel), self.input_gates_norm, gates_bias),
            self._normalize(_matmul(inputs, proposal_kernel), self.input_proposal_norm, proposal_bias),
        )

    def step(self, projected: GRUInputs, states: Any, training: bool = False) -> Output:
        """Returns the output and the new states from what `project` returned for this time step."""
        [h] = keras.tree.flatten(states)
        dropped = self._drop_state(h, training)
        _, (gates_bias, proposal_bias) = self._biases()
        if self.reset_after:
            gates, proposal = self._split(tf.matmul(dropped, self.recurrent_kernel))
        else:
            gates_kernel, proposal_kernel = self._split(self.recurrent_kernel)
            gates = tf.matmul(dropped, gates_kernel)
        gates = projected.gates + self._normalize(gates, self.state_gates_norm, gates_bias)
        z, r = tf.split(self.recurrent_activation(gates), 2, -1)
        if self.reset_after:
            proposal = r * self._normalize(proposal, self.state_proposal_norm, proposal_bias)
        else:
            proposal = self.state_proposal_norm(tf.matmul(r * dropped, proposal_kernel))
        proposal = self.activation(projected.proposal + proposal)
        h = proposal + z * (h - proposal)
        return h, keras.tree.pack_sequence_as(states, [h])

    def _biases(self):
        """Returns the biases of gates and proposal for the inputs' side, and those for the state's side."""
        if not self.use_bias:
            return (None, None), (None, None)
        if not self.reset_after:
            return self._split(self.bias), (None, None)
        of_input, of_state = tf.unstack(self.bias)
        return self._split(of_input), self._split(of_state)


@keras.saving.register_keras_serializable(package="rmsnorm_tf")
class RMSNormLSTMCell(_NormalizedCell, keras.layers.LSTMCell):
    """A long short-term memory that normalizes its inputs' side, its state's side and what the output is made of.

        i, f, c~, o = split(N(x W) + b + N(h U))
        c' = sigmoid(f) * c + sigmoid(i) * tanh(c~)
        h' = sigmoid(o) * tanh(N(c'))

    >>> rnn = keras.layers.RNN(RMSNormLSTMCell(4), return_state=True)
    >>> [t.shape for t in rnn(tf.ones((2, 5, 3)))]
    [TensorShape([2, 4]), TensorShape([2, 4]), TensorShape([2, 4])]

    Args:
        units: Size of the states h and c.
        normalization: "rms" (default), "layer" for LayerNorm, or None, which makes this `keras.layers.LSTMCell`. With
            `use_bias` the normalization of c' has an offset of its own.
        normalize_carry: Whether `N(c')` is carried to the next step in the place of c', as in TensorFlow Addons.
            Default: False.
        partial: p in (0, 1]; an "rms" takes the first `ceil(size * p)` entries only. None (default) takes all.
        epsilon: Added to the mean square or the variance, inside the root. Default: 1e-6.
        normalize_bias: Whether the bias is added before the normalization: `N(x W + b)`. Default: False.
        **kwargs: As in `keras.layers.LSTMCell`. A dropout mask is drawn once per sequence, and shared by the gates.

    Raises:
        ValueError: An argument is out of its range.

    Reference:
        Ba et al. 2016, arXiv 1607.06450, supplement, equations 17 to 31; Zhang & Sennrich 2019, arXiv 1910.07467.
    """

    norm_sizes = {"input_norm": 4, "state_norm": 4, "carry_norm": 1}  # noqa: RUF012
    kernel_blocks = (4,)

    def __init__(
        self, units: int, *, normalization: str | None = "rms", normalize_carry: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(units, normalization=normalization, **kwargs)
        self.normalize_carry = check_flag("normalize_carry", normalize_carry)

    def project(self, inputs: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Returns the inputs' side, `[..., 4 * units]` for `[..., inputs]`."""
        return self._normalize(_matmul(self._drop_inputs(inputs, training), self.kernel), self.input_norm, self.bias)

    def step(self, projected: tf.Tensor, states: Any, training: bool = False) -> Output:
        """Returns the output and the new states from what `project` returned for this time step."""
        h, c = states
        of_h = self.state_norm(tf.matmul(self._drop_state(h, training), self.recurrent_kernel))
        i, f, proposal, o = tf.split(projected + of_h, 4, -1)
        c = self.recurrent_activation(f) * c + self.recurrent_activation(i) * self.activation(proposal)
        normalized = self.carry_norm(c)
        h = self.recurrent_activation(o) * self.activation(normalized)
        return h, [h, normalized if self.normalize_carry else c]

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "normalize_carry": self.normalize_carry}
