"""`RMSNormalization`, the Keras layer: weights, axes and config around `rms_norm`."""

import keras
import tensorflow as tf

from rmsnorm_tf.fused import rms_norm


@keras.saving.register_keras_serializable(package="rmsnorm_tf")
class RMSNormalization(keras.layers.Layer):
    """Divides its input by the root mean square over `axis`."""

    def __init__(
        self,
        axis=-1,
        scale_axis=None,
        epsilon=1e-6,
        partial=None,
        scale=True,
        center=False,
        zero_centered_scale=False,
        scale_initializer=None,
        offset_initializer="zeros",
        scale_regularizer=None,
        offset_regularizer=None,
        scale_constraint=None,
        offset_constraint=None,
        fused=None,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        self.axis = axis
        self.scale_axis = scale_axis
        self.epsilon = epsilon
        self.partial = partial
        self.use_scale = scale
        self.center = center
        self.zero_centered_scale = zero_centered_scale
        if scale_initializer is None:
            scale_initializer = "zeros" if zero_centered_scale else "ones"
        self.scale_initializer = keras.initializers.get(scale_initializer)
        self.offset_initializer = keras.initializers.get(offset_initializer)
        self.scale_regularizer = keras.regularizers.get(scale_regularizer)
        self.offset_regularizer = keras.regularizers.get(offset_regularizer)
        self.scale_constraint = keras.constraints.get(scale_constraint)
        self.offset_constraint = keras.constraints.get(offset_constraint)
        self.fused = fused
        self.supports_masking = True

    def build(self, input_shape):
        axis = self.axis if self.scale_axis is None else self.scale_axis
        axes = (axis,) if isinstance(axis, int) else axis
        shape = tuple(input_shape[a] for a in sorted(a % len(input_shape) for a in axes))
        dtype = keras.backend.result_type(self.variable_dtype, "float32")
        self.scale = self.offset = None
        if self.use_scale:
            self.scale = self.add_weight(
                shape,
                name="scale",
                dtype=dtype,
                autocast=False,
                initializer=self.scale_initializer,
                regularizer=self.scale_regularizer,
                constraint=self.scale_constraint,
            )
        if self.center:
            self.offset = self.add_weight(
                shape,
                name="offset",
                dtype=dtype,
                autocast=False,
                initializer=self.offset_initializer,
                regularizer=self.offset_regularizer,
                constraint=self.offset_constraint,
            )

    def call(self, inputs):
        scale = self.scale
        if self.zero_centered_scale:
            scale = 1 + scale
        y = rms_norm(
            inputs,
            scale,
            self.offset,
            axis=self.axis,
            scale_axis=self.scale_axis,
            partial=self.partial,
            epsilon=self.epsilon,
            fused=self.fused,
        )
        return tf.cast(y, self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "axis": self.axis,
            "scale_axis": self.scale_axis,
            "epsilon": self.epsilon,
            "partial": self.partial,
            "scale": self.use_scale,
            "center": self.center,
            "zero_centered_scale": self.zero_centered_scale,
            "scale_initializer": keras.initializers.serialize(self.scale_initializer),
            "offset_initializer": keras.initializers.serialize(self.offset_initializer),
            "scale_regularizer": keras.regularizers.serialize(self.scale_regularizer),
            "offset_regularizer": keras.regularizers.serialize(self.offset_regularizer),
            "scale_constraint": keras.constraints.serialize(self.scale_constraint),
            "offset_constraint": keras.constraints.serialize(self.offset_constraint),
            "fused": self.fused,
        }
