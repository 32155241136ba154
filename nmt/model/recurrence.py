"""Recurrences over time, with the gradients of their matrices taken after the loop.

Left to itself, TensorFlow makes the gradient of every matrix at every time step and adds them up, which moves more
memory than it multiplies. Here the loop forwards keeps the results of the step's products, `z = x W + b`. The loop
backwards differentiates one step at a time with the kept z in the place of the products, and keeps x and dz; when it
is done, the gradient of W is one product of all x and all dz.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from .affine import Affine, affine, multiply

Structure = Any  # of tensors
Step = Callable[[Structure, Structure, list[tf.Tensor], Affine], Structure]


def scan(
    step: Step,
    sequences: Structure,
    initial: Structure,
    constants: tuple[tf.Tensor, ...] = (),
    *,
    product: Affine = affine,
    reverse: bool = False,
) -> Structure:
    """Runs a recurrence over time.

    Args:
        step: Maps a state, one time step of `sequences`, `constants` and what stands in for `product` to the
            next state. All its matrix products go through that.
        sequences: A structure of `[batch, time, units]`.
        initial: The state before the first step, a structure of `[batch, ...]`.
        constants: What the step uses at every time step, and has a gradient; weights need not be here. Each is
            either the matrix of products or used otherwise.
        product: Makes the matrix products.
        reverse: Runs from the last time step to the first; the result keeps the order of the input.

    Returns:
        The states after each step, a structure of `[batch, time, ...]`.
    """
    time_major = [_swap_batch_and_time(x) for x in tf.nest.flatten(sequences)]
    starts = tf.nest.flatten(initial)

    def flat_step(state, inputs, constants, product):
        state = tf.nest.pack_sequence_as(initial, state)
        return tf.nest.flatten(step(state, tf.nest.pack_sequence_as(sequences, inputs), constants, product))

    @tf.custom_gradient
    def run(*tensors):
        inputs, start = tensors[: len(time_major)], tensors[len(time_major) :][: len(starts)]
        fixed = tensors[len(time_major) + len(starts) :]
        recurrence = _Recurrence(flat_step, inputs, start, fixed, product.dtype, reverse)
        return recurrence.forwards(), recurrence.backwards

    states = run(*time_major, *starts, *constants)
    return tf.nest.pack_sequence_as(initial, [_swap_batch_and_time(x) for x in states])


def _products(step: Step, inputs, start, constants) -> list[tuple[Any, Any]]:
    """Returns the matrix and the bias of each product of a step, in order."""
    found = []

    def product(x, matrix, bias=None):
        found.append((_tensor(matrix), _tensor(bias)))
        return multiply(x, tf.convert_to_tensor(matrix))

    step(start, inputs, constants, product)
    return found


def _tensor(weight):
    """Returns TensorFlow's own variable for one of Keras's."""
    return weight.value if isinstance(weight, keras.Variable) else weight


class _Recurrence:
    """One run of a recurrence; its tensors are [time, batch, ...]."""

    def __init__(self, step: Step, inputs, start, constants, dtype: str, reverse: bool):
        self._step, self._inputs, self._start, self._constants = step, inputs, start, constants
        self._dtype, self._reverse = dtype, reverse
        self._time = tf.shape(inputs[0])[0]
        self._products = _products(step, [x[0] for x in inputs], start, constants)
        self._factors = [tf.cast(matrix, dtype) for matrix, _ in self._products]  # once, not at every time step

    def forwards(self) -> list[tf.Tensor]:
        """Returns the states."""

        def body(i, state, arrays):
            t = self._time - 1 - i if self._reverse else i
            product = _Multiply(self._factors)
            state = self._step(state, [x[t] for x in self._inputs], self._constants, product)
            return i + 1, state, _write(arrays, t, (state, product.results))

        kept = (list(self._start), [self._row(factor.shape[-1]) for factor in self._factors])
        _, (self._states, self._results) = self._loop(body, list(self._start), kept=kept)
        return self._states

    def backwards(self, *d_states: tf.Tensor, variables=()):
        """Returns the gradients of inputs, start and constants, and of the variables the step uses."""
        transposed = [tf.linalg.matrix_transpose(factor) for factor in self._factors]
        before = [self._before(*pair) for pair in zip(self._start, self._states, strict=True)]
        summed = self._not_in_products([*self._constants, *variables])

        def body(i, d_state, d_summed, arrays):
            t = i if self._reverse else self._time - 1 - i
            product = _Replay([z[t] for z in self._results], transposed)
            d_after = [later[t] + carried for later, carried in zip(d_states, d_state, strict=True)]
            d_state, d_inputs, d_here, dzs = self._differentiate([x[t] for x in before], t, summed, product, d_after)
            d_summed = [a + b for a, b in zip(d_summed, d_here, strict=True)]
            xs, dzs = ([tf.cast(x, self._dtype) for x in factors] for factors in (product.inputs, dzs))
            return i + 1, d_state, d_summed, _write(arrays, t, (d_inputs, xs, dzs))

        factors = [[self._row(factor.shape[side], self._dtype) for factor in self._factors] for side in (-2, -1)]
        zeros = [[tf.zeros_like(x) for x in each] for each in (self._start, summed)]
        kept = ([x[0] for x in self._inputs], *factors)
        d_start, d_summed, (d_inputs, xs, dzs) = self._loop(body, *zeros, kept=kept, after=d_states[0])
        gradients = self._of_products(xs, dzs)
        gradients.update((id(x), d) for x, d in zip(summed, d_summed, strict=True))
        d_constants, d_variables = ([gradients[id(x)] for x in each] for each in (self._constants, variables))
        return [*d_inputs, *d_start, *d_constants], d_variables

    def _differentiate(self, state, t, summed, product: "_Replay", d_after):
        """Returns the gradients of one step by state, inputs, what is summed over time, and results of products."""
        sources = (state, [x[t] for x in self._inputs], summed, product.results)
        with tf.GradientTape() as tape:
            tape.watch(sources)
            after = self._step(state, sources[1], self._constants, product)
        return tape.gradient(after, sources, d_after, unconnected_gradients="zero")

    def _before(self, start: tf.Tensor, states: tf.Tensor) -> tf.Tensor:
        """Returns the state before each step."""
        return tf.concat([states[1:], start[tf.newaxis]] if self._reverse else [start[tf.newaxis], states[:-1]], 0)

    def _not_in_products(self, tensors: list) -> list:
        used = {id(x) for pair in self._products for x in pair}
        return [x for x in tensors if id(x) not in used]

    def _of_products(self, xs: list[tf.Tensor], dzs: list[tf.Tensor]) -> dict[int, tf.Tensor]:
        """Returns the gradients of matrices and biases, by identity."""
        gradients = {}
        for (matrix, bias), x, dz in zip(self._products, xs, dzs, strict=True):
            found = [(matrix, _matrix_gradient(x, dz, matrix.shape.rank))]
            if bias is not None:
                found.append((bias, tf.reduce_sum(tf.reshape(tf.cast(dz, tf.float32), [-1, dz.shape[-1]]), 0)))
            for weight, gradient in found:
                gradients[id(weight)] = gradients[id(weight)] + gradient if id(weight) in gradients else gradient
        return gradients

    def _row(self, units: int, dtype: str = "float32") -> tf.TensorSpec:
        return tf.TensorSpec([self._start[0].shape[0], units], dtype)

    def _loop(self, body: Callable, *variables, kept, after: tf.Tensor | None = None):
        """Returns the variables after all steps, and what was kept of each, `[batch, ...]` as given, over time.

        XLA makes zeros at the very beginning, and so would take memory for all loops at once. An array that is to be
        made later begins with a number of `after`, `[time, batch, units]`; the loop writes over it.
        """

        def array(x):
            rows = tf.TensorArray(x.dtype, self._time, element_shape=x.shape)
            if after is None:
                return rows
            return rows.write(0, tf.fill([tf.shape(after)[1], *x.shape[1:]], tf.cast(after[0, 0, 0], x.dtype)))

        arrays = tf.nest.map_structure(array, kept)
        done = tf.while_loop(lambda i, *_: i < self._time, body, (0, *variables, arrays), parallel_iterations=1)
        time = self._inputs[0].shape[0]
        stacks = tf.nest.map_structure(lambda x: tf.ensure_shape(x.stack(), [time, *x.element_shape]), done[-1])
        return [*done[1:-1], stacks]


class _Multiply:
    """Forwards: makes the products of one step and keeps their results."""

    def __init__(self, factors: list[tf.Tensor]):
        self._factors, self.results = factors, []

    def __call__(self, x: tf.Tensor, matrix, bias=None) -> tf.Tensor:
        factor = self._factors[len(self.results)]
        z = multiply(tf.cast(x, factor.dtype), factor)
        self.results.append(z if bias is None else z + bias)
        return self.results[-1]


class _Replay:
    """Backwards: gives the kept results of one step, and keeps what was multiplied."""

    def __init__(self, results: list[tf.Tensor], transposed: list[tf.Tensor]):
        self.results, self._transposed, self.inputs = results, transposed, []

    def __call__(self, x: tf.Tensor, matrix, bias=None) -> tf.Tensor:
        number = len(self.inputs)
        factor = self._transposed[number]
        self.inputs.append(x)

        @tf.custom_gradient
        def result(x, z):
            return tf.identity(z), lambda dz: (multiply(tf.cast(dz, factor.dtype), factor), dz)

        return result(x, self.results[number])


def _matrix_gradient(x: tf.Tensor, dz: tf.Tensor, rank: int) -> tf.Tensor:
    """Returns the gradient of one matrix, or of one for each row, from `[time, batch, ...]`."""
    if rank == 3:
        return tf.cast(tf.einsum("tbi,tbu->biu", x, dz), tf.float32)
    x, dz = (tf.reshape(each, [-1, each.shape[-1]]) for each in (x, dz))
    return tf.cast(tf.matmul(x, dz, transpose_a=True), tf.float32)


def _write(arrays: Structure, t: tf.Tensor, tensors: Structure) -> Structure:
    return tf.nest.map_structure(lambda array, tensor: array.write(t, tensor), arrays, tensors)


def _swap_batch_and_time(x: tf.Tensor) -> tf.Tensor:
    return tf.transpose(x, [1, 0, *range(2, len(x.shape))])
