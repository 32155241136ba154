"""What can be computed with one statistic: a norm, the norm of a sum, and a gated norm, each with its gradient."""

import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf

from rmsnorm_tf.norm.arguments import Equation
from rmsnorm_tf.norm.tensorflow import gradient as _gradient

Tensors = Sequence[tf.Tensor]


@dataclasses.dataclass(frozen=True)
class Computation:
    """The two passes of a computation. "Weights" are nothing, scale, or scale and offset.

    Attributes:
        tensors: The number of inputs with the shape and dtype of x. The weights are further inputs.
        results: The number of results, which have the shape and dtype of x too.
        forward: `forward(equation, *inputs)` returns the results and u. It takes the options of `_gradient.forward`.
        backward: `backward(equation, *gradients of the results and u, *kept, u, *weights)` returns the gradients of the
            tensors, then those of the weights. If all tensors have the same gradient, it is returned once, because XLA
            would copy a repeated result. It takes the option of `_gradient.backward`.
        kept: `kept(tensors, results)` returns those that the backward pass needs.
    """

    tensors: int
    results: int
    forward: Callable[..., Tensors]
    backward: Callable[..., Tensors]
    kept: Callable[[Tensors, Tensors], Tensors]

    def backward_inputs(self, inputs: Tensors, outputs: Tensors) -> list[tf.Tensor]:
        """Returns what `backward` takes after the gradients, given all inputs and all outputs of `forward`."""
        *results, u = outputs
        return [*self.kept(inputs[: self.tensors], results), u, *inputs[self.tensors :]]

    def gradients(self, returned: Tensors, inputs: Tensors) -> Tensors:
        """Returns a gradient for each input, given what `backward` returned."""
        return [*[returned[0]] * (len(inputs) - len(returned)), *returned]


def _forward_of_sum(equation: Equation, x, residual, *weights, **options):
    total = tf.add_n([x, residual])  # unlike x + residual, never broadcasts
    y, u = _gradient.forward(equation, total, *weights, **options)
    return y, total, u


def _backward_of_sum(equation: Equation, dy, dtotal, du, total, u, *weights, **options):
    through_norm, *dweights = _gradient.backward(equation, dy, du, total, u, *weights, **options)
    return [through_norm + dtotal, *dweights]


# With n = rms_norm(x) and s = sigmoid(gate):
#
#     y     = n * gate * s
#     dn    = dy * gate * s
#     dgate = dy * n * s * (1 + gate * (1 - s))


_LARGEST_EXPONENT = {tf.float32: 80.0, tf.float64: 700.0}


def _forward_of_gated(equation: Equation, x, gate, *weights, **options):
    wide_gate = tf.cast(gate, _gradient.wide_dtype(x.dtype))
    n, u = _gradient.wide_forward(equation, x, *weights, **options)
    return tf.cast(n * _silu(wide_gate), x.dtype), u


def _backward_of_gated(equation: Equation, dy, du, x, gate, u, *weights, **options):
    wide, wide_gate, dy = (tf.cast(t, u.dtype) for t in (x, gate, dy))
    n = _gradient.normalized(equation, wide, u, *weights)
    sigmoid = tf.sigmoid(wide_gate)
    dgate = dy * n * sigmoid * (1 + wide_gate * (1 - sigmoid))
    dx, *dweights = _gradient.backward(equation, dy * _silu(wide_gate), du, x, u, *weights, **options)
    return [dx, tf.cast(dgate, gate.dtype), *dweights]


def _silu(t):
    # As a quotient: TensorFlow's graph optimizer reorders products, and x times the gate may overflow. The exponent is
    # limited, because further derivatives of an infinite exponential are NaN.
    return t / (1 + tf.exp(tf.minimum(-t, _LARGEST_EXPONENT[t.dtype])))


NORM = Computation(1, 1, _gradient.forward, _gradient.backward, lambda tensors, results: tensors)
NORM_OF_SUM = Computation(2, 2, _forward_of_sum, _backward_of_sum, lambda tensors, results: results[1:])
GATED_NORM = Computation(2, 1, _forward_of_gated, _backward_of_gated, lambda tensors, results: tensors)
