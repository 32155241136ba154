"""Computes the norm and its gradient in TensorFlow operations.

With one number per row, rstd = 1 / sqrt(mean(x**2) + epsilon), and z = x rstd:

    y       = z * scale + offset
    dx      = rstd (g - z mean(g z)),  where g = dy * scale
    dscale  = sum over rows of dy z
    doffset = sum over rows of dy

The backward pass needs only x, rstd and scale. A partial statistic is the mean over the first k
entries: then mean(g z) is the sum over all entries divided by k, and the term with z is subtracted
in the first k entries only. With a gate, n = z * scale + offset and s = sigmoid(gate):

    y       = n * gate * s
    dn      = dy * gate * s
    dgate   = dy * n * s * (1 + gate * (1 - s))
"""

import dataclasses
import math

import tensorflow as tf

from rmsnorm_tf.norm.arguments import NormInputs, NormSpec, wide_dtype
from rmsnorm_tf.norm.tensorflow.sums import product_of_rows, sizes_of, sum_over


@dataclasses.dataclass(frozen=True)
class Passes:
    """Computes both passes of one normalization, from the tensors that are given.

    Attributes:
        spec: What is normalized.
        given: Which of x, gate, scale and offset are given: the others are None.
        in_xla: Whether XLA compiles the passes.
    """

    spec: NormSpec
    given: NormInputs
    in_xla: bool = False

    def forward(self, *inputs: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns y in the dtype of x, and rstd."""
        t = self.given.unflatten(inputs)
        x = _wide(t.x)
        rstd = self._inverse_rms(x, self.spec.prescale(x.dtype.name))
        y = self._affine(x * rstd, t)
        if t.gate is not None:
            y *= _silu(_wide(t.gate))
        return tf.cast(y, t.x.dtype), rstd

    def backward(self, dy: tf.Tensor, rstd: tf.Tensor, *inputs: tf.Tensor) -> list[tf.Tensor]:
        """Returns the gradients of the inputs, given that of y."""
        t = self.given.unflatten(inputs)
        dy = _wide(dy)
        z = _wide(t.x) * rstd
        dgate = doffset = dscale = None
        if t.gate is not None:
            gate = _wide(t.gate)
            sigmoid = tf.sigmoid(gate)
            dgate = tf.cast(
                dy * self._affine(z, t) * sigmoid * (1 + gate * (1 - sigmoid)), t.gate.dtype
            )
            dy *= _silu(gate)
        if t.offset is not None:
            doffset = self._sum_for_weight(dy)
        dy_z = dy * z
        if t.scale is not None:
            dscale = self._sum_for_weight(dy_z)
        scale = 1.0 if t.scale is None else self._broadcast(t.scale, z)
        mean = self._weighted_sum(dy_z, t.scale) / self._count(z)
        dx = rstd * (dy * scale - self._mask_prefix(z) * mean)
        return NormInputs(tf.cast(dx, t.x.dtype), dgate, dscale, doffset).flatten()

    def rstd_of_x(self, rstd: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        """Returns rstd, with its gradient as a function of x."""

        @tf.custom_gradient
        def identity(rstd, x):
            return tf.identity(rstd), lambda drstd: (None, self._gradient_of_rstd(drstd, rstd, x))

        return identity(tf.stop_gradient(rstd), x)

    def _gradient_of_rstd(self, drstd, rstd, x):
        """Returns the gradient of x, given that of rstd: -rstd**3 x / n."""
        # In an order that does not overflow. The derivative of a prescaled root overflows, so
        # further derivatives go through another one.
        wide = _wide(x)
        rstd = tf.stop_gradient(rstd)
        root = self._inverse_rms(wide, prescale=1.0)
        rstd += root - tf.stop_gradient(root)
        return tf.cast(
            -self._mask_prefix(wide * rstd) * (rstd * drstd * rstd / self._count(wide)), x.dtype
        )

    def _inverse_rms(self, x, prescale):
        """Returns rstd, from squares of x * prescale."""
        head = x
        if self.spec.prefix is not None:
            head = x[(slice(None),) * self.spec.axes[0] + (slice(self.spec.prefix),)]
        head *= prescale
        if head.shape.num_elements() == 1:
            # Otherwise XLA moves the factor out of the square, which overflows then.
            head = tf.maximum(head, head.dtype.min)
        mean = self._sum(tf.square(head)) / self._count(x)
        return tf.math.rsqrt(mean + self.spec.epsilon * prescale * prescale) * prescale

    def _affine(self, z, t):
        """Returns `z * scale + offset`."""
        y = z if t.scale is None else z * self._broadcast(t.scale, z)
        return y if t.offset is None else y + self._broadcast(t.offset, z)

    def _sum(self, t):
        return sum_over(t, self.spec.axes, self.in_xla)

    def _weighted_sum(self, t, scale):
        """Sums the product with the scale over the statistic's axes."""
        if scale is None:
            return self._sum(t)
        if self.in_xla and self.spec.axes == self.spec.scale_axes == (t.shape.rank - 1,):
            return product_of_rows(t, scale)  # shares t with the sum for the scale
        return self._sum(t * self._broadcast(scale, t))

    def _sum_for_weight(self, t):
        axes = [a for a in range(t.shape.rank) if a not in self.spec.scale_axes]
        return tf.squeeze(sum_over(t, axes, self.in_xla, in_float64=True), axes) if axes else t

    def _count(self, t):
        """Returns the number of entries in the statistic."""
        if self.spec.prefix is not None:
            return float(self.spec.prefix)
        sizes = sizes_of(t)
        return math.prod(tf.cast(sizes[a], t.dtype) for a in self.spec.axes)

    def _mask_prefix(self, z):
        """Returns z with zeros behind the entries that the statistic takes."""
        if self.spec.prefix is None:
            return z
        [axis] = self.spec.axes
        mask = tf.cast(tf.range(z.shape[axis]) < self.spec.prefix, z.dtype)
        return z * tf.reshape(mask, [-1] + [1] * (z.shape.rank - axis - 1))

    def _broadcast(self, weight, t):
        """Gives a weight the axes that it needs to broadcast against t."""
        first, *_ = self.spec.scale_axes
        for axis in range(first, t.shape.rank):
            if axis not in self.spec.scale_axes:
                weight = tf.expand_dims(weight, axis - first)
        return weight


def _wide(t):
    return tf.cast(t, wide_dtype(t.dtype.name))


def _silu(t):
    # As a quotient: TensorFlow's graph optimizer reorders products, and x times the gate may
    # overflow. The exponent is limited, because further derivatives of an infinite exponential are
    # NaN.
    t = tf.maximum(t, -700.0 if t.dtype == tf.float64 else -80.0)
    return t / (1 + tf.exp(-t))
