"""`RMSNormalization`, the Keras layer: weights, dtype policy and config around `rms_norm`."""

from collections.abc import Iterable, Sequence
from typing import Any

import keras

from rmsnorm_tf.norm.arguments import (
    NormInputs,
    check_axis,
    check_epsilon,
    check_flag,
    check_groups,
    check_partial,
    resolve,
    wide_dtype,
)
from rmsnorm_tf.norm.function import FLOATING, check_shape, check_tensor, normalize


@keras.saving.register_keras_serializable(package="rmsnorm_tf")
class RMSNormalization(keras.layers.Layer):
    """Divides its input by the root mean square over `axis`, and learns a gain.

    The equation is `y = x / sqrt(mean(x**2, axis) + epsilon) * scale + offset`, with epsilon inside
    the root. The statistic and the products are computed in at least float32, from the input as it
    arrives: under the `mixed_float16` policy, a float32 input is cast down after the norm, not
    before. The weights have at least float32 too, and are not rounded before use. A mask goes to
    the next layer; a statistic over an axis of the mask is an error.

    >>> layer = RMSNormalization(epsilon=1e-12)
    >>> y = layer(keras.ops.convert_to_tensor([[3.0, 4.0]]))
    >>> print(keras.ops.convert_to_numpy(y).round(4))
    [[0.8485 1.1314]]
    >>> [(weight.name, tuple(weight.shape)) for weight in layer.weights]
    [('scale', (2,))]

    Call it with a gate, `layer(x, gate=z)`, for `y * silu(z)`, which is rounded once. A gate has
    the shape of `x`.

    Weights saved by a `keras.layers.RMSNormalization()` load into an `RMSNormalization()`.

    Args:
        axis: Axis or axes of the mean, in any order; negative ones count from the end. Use 1 for
            channels-first images. Default: -1.
        scale_axis: Axis or axes with a gain and an offset per entry. Default: None, the same as
            `axis`. With `axis=(1, 2), scale_axis=-1` an image is normalized over its height and
            width, with a gain per channel.
        epsilon: Added to the mean square, inside the root. Default: 1e-6.
        partial: p in (0, 1]; the mean takes only the first `ceil(size * p)` entries of the single
            `axis`. Default: None, all entries.
        groups: Number of equal groups that the single `axis` is cut into, each with a mean of its
            own. The gain keeps one entry per entry of the axis. Default: 1.
        fused: True compiles with XLA, once for every new shape; False never compiles. None
            compiles large inputs of a static shape in graphs. Default: None.
        scale: Whether to multiply by a learned gain. Default: True.
        center: Whether to add a learned offset (Keras: beta). Default: False.
        zero_centered_scale: Whether to multiply by `1 + scale`, so that weight decay pulls the gain
            towards 1. Default: False.
        scale_initializer: For the gain. Default: None, ones, or zeros if the scale is
            zero-centered.
        offset_initializer: For the offset. Default: "zeros".
        scale_regularizer: For the gain. Default: None.
        offset_regularizer: For the offset. Default: None.
        scale_constraint: For the gain. Default: None.
        offset_constraint: For the offset. Default: None.
        supports_masking: False lets a mask end here, as at a `keras.layers.RMSNormalization`.
            Default: True.
        **kwargs: Arguments of every Keras layer: name, dtype, trainable, activity_regularizer.

    Raises:
        TypeError: An input is not floating point.
        ValueError: An argument is out of its range, the input's shape does not fit the arguments,
            or a mask leaves out entries of an axis of the statistic.

    Reference:
        Zhang & Sennrich 2019, arXiv 1910.07467, equation 4 and section 3.2 (partial).
    """

    def __init__(
        self,
        axis: int | Sequence[int] = -1,
        epsilon: float = 1e-6,
        *,
        scale_axis: int | Sequence[int] | None = None,
        partial: float | None = None,
        scale: bool = True,
        center: bool = False,
        zero_centered_scale: bool = False,
        scale_initializer: Any = None,
        offset_initializer: Any = "zeros",
        scale_regularizer: Any = None,
        offset_regularizer: Any = None,
        scale_constraint: Any = None,
        offset_constraint: Any = None,
        fused: bool | None = None,
        groups: int = 1,
        supports_masking: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        if self.compute_dtype not in FLOATING:
            allowed = ", ".join(FLOATING)
            raise ValueError(
                f"dtype must compute in one of {allowed}, got {self.compute_dtype}. Choose one."
            )
        self.axis = check_axis("axis", axis)
        self.scale_axis = None if scale_axis is None else check_axis("scale_axis", scale_axis)
        self.epsilon = check_epsilon(epsilon)
        self.partial = check_partial(partial, self.axis)
        self.groups = check_groups(groups, self.axis)
        self.use_scale = check_flag("scale", scale)
        self.center = check_flag("center", center)
        self.zero_centered_scale = check_flag("zero_centered_scale", zero_centered_scale)
        if zero_centered_scale and not scale:
            raise ValueError(
                "zero_centered_scale=True needs a scale, got scale=False. "
                "Drop one of the two arguments."
            )
        if scale_initializer is None:
            scale_initializer = "zeros" if zero_centered_scale else "ones"
        self.scale_initializer = keras.initializers.get(scale_initializer)
        self.offset_initializer = keras.initializers.get(offset_initializer)
        self.scale_regularizer = keras.regularizers.get(scale_regularizer)
        self.offset_regularizer = keras.regularizers.get(offset_regularizer)
        self.scale_constraint = keras.constraints.get(scale_constraint)
        self.offset_constraint = keras.constraints.get(offset_constraint)
        self.fused = check_flag("fused", fused, (True, False, None))
        self.supports_masking = check_flag("supports_masking", supports_masking)
        self.scale: Any = None
        self.offset: Any = None

    def build(self, input_shape: Sequence[int | None]) -> None:
        spec = self._spec(input_shape)
        shape = spec.scale_shape(input_shape)
        if None in shape and (self.use_scale or self.center):
            raise ValueError(
                f"scale and offset need the sizes of the axes {spec.scale_axes}, which are not all "
                f"known in an input of shape {tuple(input_shape)}. Give them fixed sizes, or use "
                "scale=False, center=False."
            )
        self.scale = self._add_wide_weight("scale", shape) if self.use_scale else None
        self.offset = self._add_wide_weight("offset", shape) if self.center else None

    def call(self, inputs: Any, gate: Any = None) -> Any:
        dtype, of_gate = _dtypes(inputs, gate)
        if not dtype == of_gate == self.compute_dtype:  # at least the compute dtype: never rounds
            dtype = "float64" if "float64" in (dtype, of_gate, self.compute_dtype) else "float32"
            inputs = keras.ops.cast(inputs, dtype)
            gate = None if gate is None else keras.ops.cast(gate, dtype)
        scale = 1 + self.scale if self.zero_centered_scale else self.scale
        y = normalize(
            NormInputs(inputs, gate, scale, self.offset),
            dtype,
            axis=self.axis,
            scale_axis=self.scale_axis,
            partial=self.partial,
            epsilon=self.epsilon,
            groups=self.groups,
            fused=self.fused,
        )
        return y if dtype == self.compute_dtype else keras.ops.cast(y, self.compute_dtype)

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """Passes the mask on.

        Raises:
            ValueError: The statistic runs over an axis of which the mask leaves entries out.
        """
        if previous_mask is not None:
            masked = range(len(previous_mask.shape))
            over = [a for a in self._spec(inputs.shape).axes if a in masked]
            if over:
                raise ValueError(
                    f"axis={self.axis} takes the mean over axis {over[0]}, of which the mask "
                    f"leaves entries out, but {self.name} would count them. Choose another axis, "
                    "or pass an input without a mask."
                )
        return previous_mask

    def compute_output_spec(self, inputs: keras.KerasTensor, gate: Any = None) -> keras.KerasTensor:
        _dtypes(inputs, gate)
        if gate is not None:
            check_shape("gate", tuple(gate.shape), tuple(inputs.shape), range(inputs.ndim))
        return keras.KerasTensor(self.compute_output_shape(inputs.shape), dtype=self.compute_dtype)

    def compute_output_shape(self, input_shape: Sequence[int | None]) -> tuple[int | None, ...]:
        self._spec(input_shape)
        return tuple(input_shape)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **({} if self.supports_masking else {"supports_masking": False}),
            "axis": self.axis,
            "scale_axis": self.scale_axis,
            "epsilon": self.epsilon,
            "partial": self.partial,
            "groups": self.groups,
            "scale": self.use_scale,
            "center": self.center,
            "zero_centered_scale": self.zero_centered_scale,
            "scale_initializer": keras.initializers.serialize(self.scale_initializer),
            "offset_initializer": keras.initializers.serialize(self.offset_initializer),
            "scale_regularizer": keras.regularizers.serialize(self.scale_regularizer),
            "offset_regularizer": keras.regularizers.serialize(self.offset_regularizer),
            "scale_constraint": keras.constraints.serialize(self.scale_constraint),
            "offset_constraint": keras.constraints.serialize(self.offset_constraint),
            **({} if self.fused is None else {"fused": self.fused}),
        }

    def _spec(self, input_shape):
        if not isinstance(input_shape, Iterable) or any(
            isinstance(size, Iterable) for size in input_shape
        ):
            raise ValueError(
                f"{self.name} takes one tensor, got inputs of shapes {input_shape}. "
                "Call it on each."
            )
        return resolve(
            tuple(input_shape), self.axis, self.scale_axis, self.partial, self.epsilon, self.groups
        )

    def _add_wide_weight(self, name, shape):
        options = {
            kind: getattr(self, f"{name}_{kind}")
            for kind in ("initializer", "regularizer", "constraint")
        }
        dtype = wide_dtype(self.variable_dtype)
        return self.add_weight(shape=shape, name=name, dtype=dtype, autocast=False, **options)


def _dtypes(inputs, gate):
    """Returns the dtypes of inputs and gate: that of the inputs twice if there is no gate."""
    dtype = check_tensor("inputs", inputs)
    return dtype, dtype if gate is None else check_tensor("gate", gate)
