"""The norm on PyTorch, whose backward pass keeps x and one number a row.

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
    """Whether PyTorch has a fused kernel for these inputs on a GPU."""
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
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, dy, drstd):
        spec = ctx.spec
        rstd, x, gate, scale, offset = ctx.saved_tensors
        z = _wide(x) * rstd
        factor = 0 if drstd is None else rstd * drstd  # of -z rstd / n in dx
        dx = dgate = dscale = doffset = None
        if dy is not None:
            dy = _wide(dy)
            if gate is not None:
                wide = _wide(gate)
                sigmoid = torch.sigmoid(wide)
                dgate = dy * _affine(z, spec, scale, offset) * sigmoid * (1 + wide * (1 - sigmoid))
                dgate = dgate.to(gate.dtype)
                dy = dy * torch.nn.functional.silu(wide)
            others = [a for a in range(x.ndim) if a not in spec.scale_axes]
            doffset = None if offset is None else _sum(dy, others)
            dscale = None if scale is None else _sum(dy * z, others)
            g = dy if scale is None else dy * _broadcast(scale, spec, z)
            factor = factor + (g * z).sum(spec.axes, keepdim=True)
            dx = g * rstd
        if torch.is_tensor(factor):
            term = _mask_prefix(z, spec) * (rstd * factor / _count(x, spec))
            dx = -term if dx is None else dx - term
        return None, None if dx is None else dx.to(x.dtype), dgate, dscale, doffset


class _NormWithForwardMode(_Norm):
    """The same with forward mode, which `torch.compile` refuses to read."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        _Norm.setup_context(ctx, inputs, output)
        ctx.save_for_forward(output[1], *inputs[1:])

    @staticmethod
    def jvp(ctx, _, dx, dgate, dscale, doffset):
        spec = ctx.spec
        rstd, x, gate, scale, offset = ctx.saved_tensors
        z = _wide(x) * rstd
        dz = torch.zeros_like(z)
        drstd = torch.zeros_like(rstd)
        if dx is not None:
            dx = _wide(dx)
            drstd = -rstd * (
                rstd * (_mask_prefix(z, spec) * dx).sum(spec.axes, keepdim=True) / _count(x, spec)
            )
            dz = dx * rstd + _wide(x) * drstd
        dy = _affine(dz, spec, scale, None)
        if dscale is not None:
            dy = dy + _affine(z, spec, dscale, None)
        if doffset is not None:
            dy = dy + _broadcast(doffset, spec, z)
        if gate is not None:
            wide = _wide(gate)
            sigmoid = torch.sigmoid(wide)
            dy = dy * wide * sigmoid
            if dgate is not None:
                slope = sigmoid * (1 + wide * (1 - sigmoid))
                dy = dy + _affine(z, spec, scale, offset) * slope * _wide(dgate)
        return dy.to(x.dtype), drstd


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
