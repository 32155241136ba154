"""`AddRMSNormalization`, the Keras layer around `add_rms_norm`."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from rmsnorm_tf.norm.function import add_and_normalize, check_dtype
from rmsnorm_tf.norm.layer import RMSNormalization

Pair = Sequence[Any]


@keras.saving.register_keras_serializable(package="rmsnorm_tf")
class AddRMSNormalization(RMSNormalization):
    """Adds two tensors, and returns the normalized sum and the sum.

    The same as `total = keras.layers.Add()([x, residual])` and `RMSNormalization()(total)`, but in one function
    forward and one backward. In a pre-norm Transformer, the sum is the residual stream:

    >>> norm = AddRMSNormalization(epsilon=1e-12)
    >>> y, total = norm([tf.constant([[1.0, 3.0]]), tf.constant([[2.0, 1.0]])])
    >>> total.numpy(), y.numpy().round(4)
    (array([[3., 4.]], dtype=float32), array([[0.8485, 1.1314]], dtype=float32))

    Both tensors have the same shape. Under a mixed policy the normalized sum has the compute dtype, and the sum is
    never rounded to less than the wider of the two tensors. The sum and the normalized sum get the mask of the tensors;
    if both have a mask, a position that either mask keeps is kept, as in `keras.layers.Add`.

    Args:
        *args: As in `RMSNormalization`.
        **kwargs: As in `RMSNormalization`.

    Raises:
        TypeError: As in `RMSNormalization`, or a tensor is ragged.
        ValueError: As in `RMSNormalization`, or the input is not a list of two tensors of one shape.

    Reference:
        Zhang & Sennrich 2019, arXiv 1910.07467, equation 4.
    """

    def build(self, input_shape: Pair) -> None:
        super().build(_one_shape(input_shape))

    def call(self, inputs: Pair) -> tuple[tf.Tensor, tf.Tensor]:
        x, residual = self._cast_up(*_two_tensors(inputs))
        y, total = add_and_normalize(x, residual, *self._weights(), **self._options())
        return self._rounded(y), total

    def compute_mask(self, inputs: Pair, previous_mask: Any) -> Any:
        masks = [mask for mask in previous_mask or () if mask is not None]
        if not masks:
            return None
        mask = masks[0] if len(masks) == 1 else keras.ops.logical_or(*masks)
        return mask, mask

    def compute_output_spec(self, inputs: Pair) -> tuple[keras.KerasTensor, keras.KerasTensor]:
        shapes = self.compute_output_shape([tensor.shape for tensor in _two_tensors(inputs)])
        total = keras.backend.result_type(*(tensor.dtype for tensor in inputs), self.compute_dtype)
        return keras.KerasTensor(shapes[0], self.compute_dtype), keras.KerasTensor(shapes[1], total)

    def compute_output_shape(self, input_shape: Pair) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
        shape = super().compute_output_shape(_one_shape(input_shape))
        return shape, shape


def _two(inputs):
    """Returns `inputs`, which must be a list or tuple of two tensors, as for `keras.layers.Add`."""
    if not isinstance(inputs, (list, tuple)) or len(inputs) != 2:
        raise ValueError(
            f"AddRMSNormalization takes a list of two tensors, not {inputs!r}. Call it as norm([x, residual])."
        )
    return inputs


def _two_tensors(inputs):
    for tensor in _two(inputs):
        check_dtype("inputs", tensor.dtype)
    return inputs


def _one_shape(shapes):
    """Returns what is known of the one shape that both inputs have."""
    if not all(isinstance(shape, (list, tuple, tf.TensorShape)) for shape in shapes):
        shapes = [shapes]  # of a single tensor
    first, second = (tf.TensorShape(shape) for shape in _two(shapes))
    if not first.is_compatible_with(second):
        raise ValueError(
            f"Both inputs of AddRMSNormalization must have the same shape, got {first} and {second}. They are not "
            "broadcast; use keras.ops.broadcast_to."
        )
    return tuple(first.merge_with(second))
