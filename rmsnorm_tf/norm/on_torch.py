"""Computes the norm on PyTorch; the backward pass keeps x and one number a row.

`norm.tensorflow.passes` has the equations.
"""

import math
from typing import Any

import torch

from rmsnorm_tf.norm.arguments import NormInputs, NormSpec


def compute(spec: NormSpec, t: NormInputs, fused: bool | None) -> Any:
    """Returns y. `fused` has no effect: whoever calls compiles, with `torch.compile`."""
    if t.x.is_cuda and _has_kernel(spec, t):
        return torch.nn.functional.rms_norm(t.x, t.x.shape[-1:], t.scale, spec.epsilon)
    # The tracer of ONNX knows no autograd.Function.
    if torch.jit.is_tracing() or not torch.is_grad_enabled():
        return _Norm.forward(spec, *t)[0]
    function = _Norm if torch.compiler.is_compiling() else _NormWithForwardMode
    return function.apply(spec, *t)[0]


def _has_kernel(spec, t):
    """Returns whether PyTorch has a fused kernel for these inputs on a GPU."""
    is_last = spec.axes == spec.scale_axes == (t.x.ndim - 1,)
    is_plain = spec.prefix is None and t.gate is None and t.offset is None
    return is_last and is_plain and (t.scale is None or t.scale.dtype == t.x.dtype)


class _Norm(torch.autograd.Function):
    """Returns y and rstd. rstd is an output, so that its own gradient gives second derivatives."""

    generate_vmap_rule = True

    @staticmethod
    def forward(spec, x, gate, scale, offset):
        wide = _wide(x)
        rstd = _inverse_rms(wide, spec)
        y = _affine(wide * rstd, spec, scale, offset)
        if gate is not None:
            y = y * torch.nn.functional.silu(_wide(gate))
        return y.to(x.dtype), rstd

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.spec, *tensors = inputs
        ctx.save_for_backward(output[1], *tensors)
        ctx.save_for_forward(output[1], *tensors)

    @staticmethod
    def backward(ctx, dy, drstd):
        spec = ctx.spec
        rstd, x, gate, scale, offset = ctx.saved_tensors
        z = _wide(x) * rstd
        g = _wide(dy)
        dgate = dscale = doffset = None
        if gate is not None:
            wide = _wide(gate)
            sigmoid = torch.sigmoid(wide)
            dgate = g * _affine(z, spec, scale, offset) * sigmoid * (1 + wide * (1 - sigmoid))
            dgate = dgate.to(gate.dtype)
            g = g * torch.nn.functional.silu(wide)
        others = [a for a in range(x.ndim) if a not in spec.scale_axes]
        if offset is not None:
            doffset = _sum(g, others)
        if scale is not None:
            dscale = _sum(g * z, others)
            g = g * _broadcast(scale, spec, z)
        total = rstd * drstd + (g * z).sum(spec.axes, keepdim=True)
        dx = g * rstd - _mask_prefix(z, spec) * (rstd * total / _count(x, spec))
        return None, dx.to(x.dtype), dgate, dscale, doffset


class _NormWithForwardMode(_Norm):
    """Adds forward mode, which `torch.compile` refuses to read."""

    @staticmethod
    def jvp(ctx, _, dx, dgate, dscale, doffset):
        spec = ctx.spec
        rstd, x, gate, scale, offset = ctx.saved_tensors
        z = _wide(x) * rstd
        dx = _wide(dx)
        mean = (_mask_prefix(z, spec) * dx).sum(spec.axes, keepdim=True) / _count(x, spec)
        dy = _affine(rstd * (dx - z * mean), spec, scale, doffset)
        if scale is not None:
            dy = dy + z * _broadcast(dscale, spec, z)
        if gate is not None:
            wide = _wide(gate)
            sigmoid = torch.sigmoid(wide)
            dsilu = sigmoid * (1 + wide * (1 - sigmoid)) * _wide(dgate)
            dy = dy * wide * sigmoid + _affine(z, spec, scale, offset) * dsilu
        return dy.to(x.dtype), -rstd * (rstd * mean)


def _wide(t):
    return t if t.dtype == torch.float64 else t.float()


def _inverse_rms(x, spec):
    prescale = spec.prescale("float64" if x.dtype == torch.float64 else "float32")
    head = x if spec.prefix is None else x.narrow(spec.axes[0], 0, spec.prefix)
    mean = (head * prescale).square().mean(spec.axes, keepdim=True)
    return torch.rsqrt(mean + spec.epsilon * prescale * prescale) * prescale


def _affine(z, spec, scale, offset):
    y = z if scale is None else z * _broadcast(scale, spec, z)
    return y if offset is None else y + _broadcast(offset, spec, z)


def _broadcast(weight, spec, t):
    return weight.reshape([size if a in spec.scale_axes else 1 for a, size in enumerate(t.shape)])


def _sum(t, axes):
    return t.sum(axes) if axes else t


def _count(t, spec):
    return spec.prefix or math.prod(
        [t.shape[a] for a in spec.axes]
    )  # torch.compile takes no generator


def _mask_prefix(z, spec):
    """Returns z with zeros behind the entries that the statistic takes."""
    if spec.prefix is None:
        return z
    [axis] = spec.axes
    mask = torch.arange(z.shape[axis], device=z.device) < spec.prefix
    return z * mask.reshape([-1] + [1] * (z.ndim - axis - 1))
