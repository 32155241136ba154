"""Computes the norm on JAX; the backward pass keeps x and one number a row."""

import functools
from typing import Any

import jax
from jax.ad_checkpoint import checkpoint_name

from rmsnorm_tf.norm.arguments import NormInputs, NormSpec
from rmsnorm_tf.norm.portable import forward, inverse_rms, mean_of_first

_RSTD = "rmsnorm_tf.rstd"


def compute(spec: NormSpec, t: NormInputs, fused: bool | None) -> Any:
    """Returns y.

    `fused` has no effect: a call is compiled, and becomes part of a `jax.jit` around it.
    """
    return _compute(t, spec)


@functools.partial(jax.jit, static_argnums=1)
@functools.partial(
    jax.checkpoint, static_argnums=1, policy=jax.checkpoint_policies.save_only_these_names(_RSTD)
)
def _compute(t, spec):
    return forward(t, spec, lambda x, spec: checkpoint_name(_inverse_rms(x, spec), _RSTD))


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _inverse_rms(x, spec):
    return inverse_rms(x, spec)


@_inverse_rms.defjvp
def _(spec, primals, tangents):
    """Returns -rstd**2 mean(x rstd dx), in an order in which no power of rstd overflows."""
    [x] = primals
    [dx] = tangents
    rstd = _inverse_rms(x, spec)
    return rstd, -rstd * (rstd * mean_of_first(x * rstd * dx, spec))
