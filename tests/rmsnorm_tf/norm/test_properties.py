"""Values for axes, shapes, dtypes and arguments that hypothesis draws, against the equation."""

import math

import numpy as np
import pytest
from keras import ops

from rmsnorm_tf import rms_norm
from tests import reference
from tests.backends import dtype_of, to_array
from tests.cases import TOLERANCE, assert_close
from tests.parameters import slow

hypothesis = pytest.importorskip("hypothesis", reason="hypothesis is not installed")
st = hypothesis.strategies


@st.composite
def calls(draw):
    """Returns a shape and the arguments of a call that is allowed, without tensors."""
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=1, max_size=4)))
    numbers = st.integers(-len(shape), len(shape) - 1)

    def axes():
        return draw(
            st.one_of(
                numbers,
                st.lists(numbers, min_size=1, unique_by=lambda a: a % len(shape)).map(tuple),
            )
        )

    arguments = {"axis": axes(), "epsilon": draw(st.sampled_from([1e-6, 1e-3, 1.0]))}
    if draw(st.booleans()):
        arguments["scale_axis"] = axes()
    if np.size(arguments["axis"]) == 1:
        size = shape[np.squeeze(arguments["axis"])]
        arguments["groups"] = draw(
            st.sampled_from([n for n in range(1, size + 1) if size % n == 0])
        )
        arguments["partial"] = draw(st.sampled_from([None, 0.3, 0.5, 1.0]))
    return shape, arguments


@pytest.mark.parametrize("examples", [15, *slow(200)])
def test_equation(examples):
    draw = hypothesis.given(
        call=calls(),
        dtype=st.sampled_from(list(TOLERANCE)),
        fused=st.booleans(),
        has=st.tuples(*[st.booleans()] * 3),
    )
    settings = hypothesis.settings(
        max_examples=examples, derandomize=True, deadline=None, database=None
    )
    settings(draw(check_equation))()


def check_equation(call, dtype, fused, has):
    shape, arguments = call
    rng = np.random.default_rng(len(shape))
    wide = "float64" if dtype == "float64" else "float32"
    axis, partial, groups = (
        arguments.get(name, default)
        for name, default in (("axis", 0), ("partial", None), ("groups", 1))
    )
    scale_axes = np.atleast_1d(arguments.get("scale_axis", axis)) % len(shape)
    x, gate = (ops.cast(a, dtype) for a in rng.normal(size=(2, *shape)))
    sizes = [shape[a] for a in sorted(scale_axes)]
    scale, offset = (ops.cast(a, wide) for a in rng.normal(size=(2, *sizes)))
    drawn = zip((scale, offset, gate), has, strict=True)
    scale, offset, gate = (t if given else None for t, given in drawn)
    y = rms_norm(x, scale, offset, gate=gate, fused=fused, **arguments)
    assert dtype_of(y) == dtype and tuple(y.shape) == shape
    k = None if partial is None else math.ceil(shape[np.squeeze(axis)] // groups * partial)
    weights = [None if t is None else to_array(t) for t in (scale, offset)]
    expected = reference.rms_norm(
        to_array(x), *weights, axis, arguments.get("scale_axis"), k, arguments["epsilon"], groups
    )
    assert_close(
        y, expected if gate is None else expected * reference.silu(to_array(gate)), dtype, factor=3
    )
