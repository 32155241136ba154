"""Traces a model: its TensorFlow operations, and the layer and the variables of each."""

import contextlib
import functools
import inspect
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import keras
import tensorflow as tf

from rmsnorm_tf.conversion.model.calls import inputs_of, on_inputs
from rmsnorm_tf.conversion.model.layers import is_reverse, walk

_IN_CALL = re.compile(r"call\.(\d+)\.")

# Operations that read nothing but the shape of their inputs.
_SHAPE_ONLY = frozenset(
    {"Shape", "ShapeN", "Rank", "Size", "VariableShape", "ZerosLike", "OnesLike"}
)


@dataclass
class Call:
    """Records one call of a layer: `reverse` if it asks a reversible embedding for logits."""

    layer: keras.Layer
    reverse: bool = False
    output: Any = None


@dataclass
class Trace:
    """Holds the operations of a model in the order in which they run, by names of tensors.

    A norm over the last axis is replaced by an identity, which stands for the normalized input,
    followed by the product with the gain and the sum with the offset.

    Attributes:
        operations: All operations.
        consumers: For each tensor, the operations that read its entries, each with the position
            among its inputs.
        outputs: The tensors that the model returns.
        variables: The Keras variable behind a resource.
        calls: The calls of all layers.
        normalized: The outputs of the identities that stand for norms.
        norms: For each norm by id, the tensors that it takes: None for a call elsewhere, such as
            in a loop.
    """

    operations: list[tf.Operation] = field(default_factory=list)
    consumers: dict[str, list[tuple[tf.Operation, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    outputs: set[str] = field(default_factory=set)
    variables: dict[str, keras.Variable] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    normalized: set[str] = field(default_factory=set)
    norms: dict[int, list[tf.Tensor | None]] = field(default_factory=lambda: defaultdict(list))

    def call_of(self, operation: tf.Operation) -> Call | None:
        """Returns the innermost call of a layer that an operation belongs to."""
        numbers = _IN_CALL.findall(operation.name)
        return self.calls[int(numbers[-1])] if numbers else None


def trace(
    model: keras.Model, modes: Collection[bool | None], norms: Collection[keras.Layer]
) -> Trace:
    """Traces the calls of a model in all modes.

    Of the norms, all over the last axis, the trace has only what comes after the statistic.
    """
    traced = Trace()
    norm_ids = {id(norm) for norm in norms}
    run = on_inputs(
        lambda inputs: [model(inputs, training=mode) for mode in modes], inputs_of(model)
    )
    with contextlib.ExitStack() as stack:
        for _, _, layer in walk(model):
            if not isinstance(layer, keras.Model):
                stack.enter_context(_recorded(layer, traced, id(layer) in norm_ids))
        concrete = run.get_concrete_function()
    traced.operations = concrete.graph.get_operations()
    traced.outputs = {t.name for t in concrete.outputs}
    handles = {id(variable.value.handle): variable for variable in model.variables}
    outer = concrete.captured_inputs
    inner = concrete.inputs[len(concrete.inputs) - len(outer) :]
    traced.variables = {
        placeholder.name: handles[id(handle)]
        for placeholder, handle in zip(inner, outer, strict=True)
        if id(handle) in handles
    }
    for operation in traced.operations:
        if operation.type not in _SHAPE_ONLY:
            for position, tensor in enumerate(operation.inputs):
                traced.consumers[tensor.name].append((operation, position))
    for taken in traced.norms.values():
        taken[:] = [t if t is not None and t.graph is concrete.graph else None for t in taken]
    return traced


@contextlib.contextmanager
def _recorded(layer: keras.Layer, traced: Trace, is_norm: bool) -> Iterator[None]:
    """Records the calls of a layer while the context is open."""
    attribute = "quantized_call" if getattr(layer, "quantization_mode", None) else "call"
    own = vars(layer).get(attribute)
    function = getattr(layer, attribute)

    @functools.wraps(function)
    def call(*args, **kwargs):
        number = len(traced.calls)
        traced.calls.append(Call(layer, is_reverse(function, args, kwargs)))
        with tf.name_scope(f"call.{number}."):
            if is_norm:
                [inputs] = inspect.signature(function).bind(*args, **kwargs).args
                traced.calls[number].output = _norm(layer, inputs, traced)
            else:
                traced.calls[number].output = function(*args, **kwargs)
        return traced.calls[number].output

    setattr(layer, attribute, call)
    try:
        yield
    finally:
        delattr(layer, attribute)
        if own is not None:
            setattr(layer, attribute, own)


def _norm(layer, x, traced):
    """Returns what stands for a norm of x in the trace."""
    wide = tf.identity(tf.cast(x, tf.float32 if x.dtype.size < 4 else x.dtype))
    traced.norms[id(layer)].append(x)
    traced.normalized.add(wide.name)
    y = wide if layer.gamma is None else wide * tf.cast(layer.gamma, wide.dtype)
    y = y if layer.beta is None else y + tf.cast(layer.beta, wide.dtype)
    return tf.cast(y, layer.compute_dtype)
