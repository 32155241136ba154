"""Runs recurrences over time, and computes the gradients of their weights after the loop.

By default TensorFlow computes the gradient of every matrix at every time step and adds them up,
which is bound by memory bandwidth. Here the forward loop stores the result `z = x W + b` of each
product. The backward loop differentiates one step at a time with the stored z in place of the
products, and stores x and dz. Afterwards the gradient of W is one product of all x and all dz. Only
this product is rounded. Products of one time step stay in float32: they are too small to gain from
less precision.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from .forward_pass import Affine, Weight, affine, rounded_product

Structure = Any  # of tensors
Step = Callable[[Structure, Structure, list[tf.Tensor], Affine], Structure]


class Matrix(NamedTuple):
    """The weight and bias of one `affine` call of a step."""

    weight: Weight  # [inputs, units], or one for each row, [batch, inputs, units]
    bias: Weight | None = None  # [units]


def scan(
    step: Step,
    sequences: Structure,
    initial: Structure,
    matrices: Sequence[Matrix] = (),
    constants: Sequence[tf.Tensor] = (),
    *,
    dtype: str = "float32",
    reverse: bool = False,
) -> Structure:
    """Runs a recurrence over time. Returns the states after each step, a structure of `[batch,
    time, ...]`.

    Args:
        step: Maps a state, one time step of `sequences`, `constants`, and a function in place of
            `affine` to the next state.
        sequences: A structure of `[batch, time, units]`.
        initial: The state before the first step, a structure of `[batch, ...]`.
        matrices: The matrices that the step's `affine` calls multiply by, in the order of the
            calls.
        constants: Other tensors that the step uses and that need a gradient; variables need not be
            listed.
        dtype: The factors of the weights' gradients are rounded to it.
        reverse: Runs from the last time step to the first; the result keeps the order of the input.
    """
    biases = [matrix.bias for matrix in matrices if matrix.bias is not None]
    arguments = (
        [_swap_batch_and_time(x) for x in tf.nest.flatten(sequences)],
        tf.nest.flatten(initial),
        list(constants),
        [tf.convert_to_tensor(matrix.weight) for matrix in matrices],
        [tf.convert_to_tensor(bias) for bias in biases],
    )

    def flat_step(state, inputs, constants, affine):
        state = tf.nest.pack_sequence_as(initial, state)
        inputs = tf.nest.pack_sequence_as(sequences, inputs)
        return tf.nest.flatten(step(state, inputs, constants, affine))

    @tf.custom_gradient
    def run(*tensors):
        recurrence = _Recurrence(
            flat_step, matrices, tf.nest.pack_sequence_as(arguments, tensors), dtype, reverse
        )
        return recurrence.forwards(), recurrence.backwards

    states = run(*tf.nest.flatten(arguments))
    return tf.nest.pack_sequence_as(initial, [_swap_batch_and_time(x) for x in states])


class _Recurrence:
    """One run of a recurrence; its tensors are [time, batch, ...]."""

    def __init__(
        self,
        step: Step,
        matrices: Sequence[Matrix],
        arguments: Structure,
        dtype: str,
        reverse: bool,
    ):
        self._step = step
        self._matrices = matrices
        self._dtype = dtype
        self._reverse = reverse
        self._inputs, self._start, self._constants, self._factors, biases = arguments
        self._time = tf.shape(self._inputs[0])[0]
        biases = iter(biases)
        self._biases = [None if matrix.bias is None else next(biases) for matrix in matrices]

    def forwards(self) -> list[tf.Tensor]:

        def product(x, number):
            return affine(x, self._factors[number], self._biases[number])

        def body(i, state, arrays):
            t = self._time - 1 - i if self._reverse else i
            products = _Products(self._matrices, product)
            state = self._step(state, [x[t] for x in self._inputs], self._constants, products)
            return i + 1, state, _write(arrays, t, (state, products.results))

        stored = (list(self._start), [self._row(factor, -1) for factor in self._factors])
        _, (self._states, self._results) = self._loop(body, list(self._start), stored=stored)
        return self._states

    def backwards(self, *d_states: tf.Tensor, variables=()):
        """Returns the gradients of all arguments, and of the other variables that the step uses."""
        transposed = [tf.linalg.matrix_transpose(factor) for factor in self._factors]
        before = [
            tf.concat(
                [states[1:], start[tf.newaxis]]
                if self._reverse
                else [start[tf.newaxis], states[:-1]],
                0,
            )
            for start, states in zip(self._start, self._states, strict=True)
        ]
        summed = [*self._constants, *variables]

        def body(i, d_state, d_summed, arrays):
            t = i if self._reverse else self._time - 1 - i
            zs = [z[t] for z in self._results]
            products = _Products(
                self._matrices, lambda x, number: _replaced(x, zs[number], transposed[number])
            )
            d_after = [later[t] + carried for later, carried in zip(d_states, d_state, strict=True)]
            sources = ([x[t] for x in before], [x[t] for x in self._inputs], summed, zs)
            with tf.GradientTape() as tape:
                tape.watch(sources)
                after = self._step(*sources[:2], self._constants, products)
            d_state, d_inputs, d_here, dzs = tape.gradient(
                after, sources, d_after, unconnected_gradients="zero"
            )
            d_summed = [a + b for a, b in zip(d_summed, d_here, strict=True)]
            return i + 1, d_state, d_summed, _write(arrays, t, (d_inputs, products.inputs, dzs))

        taken = [self._row(factor, -2) for factor in self._factors]
        returned = [self._row(factor, -1) for factor in self._factors]
        zeros = tf.nest.map_structure(tf.zeros_like, [list(self._start), summed])
        stored = ([x[0] for x in self._inputs], taken, returned)
        d_start, d_summed, (d_inputs, xs, dzs) = self._loop(
            body, *zeros, stored=stored, like=d_states[0]
        )
        d_weights = [
            _weight_gradient(*each, self._dtype)
            for each in zip(xs, dzs, self._factors, strict=True)
        ]
        d_biases = [
            tf.reduce_sum(dz, [0, 1])
            for dz, bias in zip(dzs, self._biases, strict=True)
            if bias is not None
        ]
        d_constants = d_summed[: len(self._constants)]
        d_variables = d_summed[len(self._constants) :]
        gradients = [*d_inputs, *d_start, *d_constants, *d_weights, *d_biases]
        return (gradients, d_variables) if variables else gradients

    def _row(self, factor: tf.Tensor, side: int) -> tf.Tensor:
        """Returns zeros of the shape of a product's input (side -2) or result (-1)."""
        return tf.zeros([tf.shape(self._start[0])[0], factor.shape[side] or tf.shape(factor)[side]])

    def _loop(self, body: Callable, *variables, stored: Structure, like: tf.Tensor | None = None):
        """Returns the variables after all steps, and what the steps stored, `[time, batch, ...]`.

        XLA hoists constant zeros and would allocate the arrays of every loop at once. So the
        backward loop fills its arrays with an element of `like`, `[time, batch, units]`, whose
        value XLA cannot know; the loop overwrites it.
        """

        def array(x):
            rows = tf.TensorArray(x.dtype, self._time, element_shape=x.shape)
            if like is None:
                return rows
            return rows.write(0, tf.fill(tf.shape(x), tf.cast(like[0, 0, 0], x.dtype)))

        def run():
            arrays = tf.nest.map_structure(array, stored)
            done = tf.while_loop(
                lambda i, *_: i < self._time, body, (0, *variables, arrays), parallel_iterations=1
            )
            time = self._inputs[0].shape[0]
            stacks = tf.nest.map_structure(
                lambda x: tf.ensure_shape(x.stack(), [time, *x.element_shape]), done[-1]
            )
            return [*done[1:-1], stacks]

        if self._dtype == "float32" or tf.executing_eagerly():
            return run()
        # On a CPU, a mixed-precision update is not compiled as a whole, but its loops are faster
        # when compiled.
        return tf.function(run, jit_compile=True, autograph=False)()


class _Products:
    """Takes the place of `affine` in a step.

    `product` maps `x` and the number of the call to the result.
    """

    def __init__(self, matrices: Sequence[Matrix], product: Callable[[tf.Tensor, int], tf.Tensor]):
        self._matrices = matrices
        self._product = product
        self.inputs = []
        self.results = []

    def __call__(self, x: tf.Tensor, weight: Weight, bias: Weight | None = None) -> tf.Tensor:
        number = len(self.inputs)
        declared = self._matrices[number] if number < len(self._matrices) else Matrix(None)
        if declared.weight is not weight or declared.bias is not bias:
            raise ValueError(
                f"`affine` call {number} of the step is not what `matrices` declares there"
            )
        self.inputs.append(x)
        self.results.append(self._product(x, number))
        return self.results[-1]


def _replaced(x: tf.Tensor, result: tf.Tensor, transposed: tf.Tensor) -> tf.Tensor:
    """Returns the stored `z = x W + b`; the gradient of x is `dz W^T`, and z itself gets dz."""

    @tf.custom_gradient
    def identity(x, z):
        return tf.identity(z), lambda dz: (affine(dz, transposed), dz)

    return identity(x, result)


def _weight_gradient(x: tf.Tensor, dz: tf.Tensor, factor: tf.Tensor, dtype: str) -> tf.Tensor:
    """Returns the gradient of a matrix, or of one for each row, from `[time, batch, ...]`."""
    if len(factor.shape) == 3:
        x, dz = (tf.transpose(each, [1, 0, 2]) for each in (x, dz))
    else:
        x, dz = (tf.reshape(each, [-1, each.shape[-1]]) for each in (x, dz))
    return rounded_product(x, dz, dtype, transpose_a=True)


def _write(arrays: Structure, t: tf.Tensor, tensors: Structure) -> Structure:
    return tf.nest.map_structure(lambda array, tensor: array.write(t, tensor), arrays, tensors)


def _swap_batch_and_time(x: tf.Tensor) -> tf.Tensor:
    return tf.transpose(x, [1, 0, *range(2, len(x.shape))])
