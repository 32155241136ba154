"""Joins the two passes of a computation into one function, for tapes and for forward accumulators."""

import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf

from rmsnorm_tf.norm.arguments import Equation
from rmsnorm_tf.norm.tensorflow.computation import Computation, Tensors


@dataclasses.dataclass(eq=False)  # hashable, by identity
class _Call:
    """One call of a differentiable function, as its gradient function sees it.

    Attributes:
        outputs: What the call returned, or None before it returns.
        in_forward_mode: Whether the gradient was asked for before the call returned. Only a forward accumulator asks so
            early, and TensorFlow has no public function that tells whether one is open.
    """

    outputs: Sequence[tf.Tensor] | None = None
    in_forward_mode: bool = False


def differentiable(
    computation: Computation,
    equation: Equation,
    forward: Callable[..., Tensors],
    backward: Callable[..., Tensors],
) -> Callable[..., Tensors]:
    """Returns `compute(*inputs)`, which returns the results of `forward` and has `backward` as its gradient.

    Pass the passes of the computation for the equation, or compiled versions of them.

    Tapes record only this gradient: in a graph, inputs and outputs of `forward` pass through stop_gradient; in eager
    mode, init_scope pauses the tapes. To a forward accumulator the outputs are then constants, so in forward mode plain
    operations are used.
    """

    @tf.custom_gradient  # once, because it inspects signatures, which takes longer than a small operation
    def outputs(*inputs):
        call = _Call()
        if tf.executing_eagerly():
            with tf.init_scope():  # which pauses tapes, at less cost than stop_gradient
                made = forward(*inputs)
        else:
            made = map(tf.stop_gradient, forward(*map(tf.stop_gradient, inputs)))
        made = tuple(made)

        def gradient(*upstream):
            if call.outputs is None:
                call.in_forward_mode = True
            # Second derivatives need the outputs that the call returned: a tape does not relate `made` to the inputs.
            known = made if call.outputs is None else call.outputs
            return computation.gradients(backward(*upstream, *computation.backward_inputs(inputs, known)), inputs)

        return {call: made}, gradient  # TensorFlow returns its copies of `made` in the same structure

    def compute(*inputs):
        [(call, call_outputs)] = outputs(*inputs).items()
        call.outputs = call_outputs
        if call.in_forward_mode:
            return computation.forward(equation, *inputs, branches=False)[:-1]
        return call.outputs[:-1]

    return compute
