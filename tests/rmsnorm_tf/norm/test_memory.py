"""What the backward pass keeps of the forward pass: the input and a number a row."""

import keras
import pytest
import tensorflow as tf

from rmsnorm_tf import RMSNormalization


def source(tensor):
    """Follows identities, which share their input's memory, also through functions."""
    while True:
        if tensor.op.type in ("Identity", "IdentityN", "StopGradient"):
            tensor = tensor.op.inputs[tensor.value_index]
        elif tensor.op.type.endswith("PartitionedCall"):
            position = returned_input(tensor)
            if position is None:
                return tensor
            tensor = tensor.op.inputs[position]
        else:
            return tensor


def returned_input(tensor):
    """Returns which input a called function returns as this output, or None."""
    name = tensor.op.get_attr("f").name
    [function] = [
        f for f in tensor.graph.as_graph_def().library.function if f.signature.name == name
    ]
    nodes = {node.name: node for node in function.node_def}
    returned = function.ret[function.signature.output_arg[tensor.value_index].name]
    while (node := nodes.get(returned.partition(":")[0])) is not None:
        if node.op not in ("Identity", "IdentityN", "StopGradient"):
            return None
        returned = node.input[int(returned.rpartition(":")[2])]
    return [argument.name for argument in function.signature.input_arg].index(returned)


def kept_for_backward(layer, x):
    """Returns the forward tensors that the backward pass of `layer` takes in a graph."""
    kept = {}

    @tf.function
    def run(x, dy):
        y = layer(x)
        forward = set(x.graph.get_operations())
        gradients = tf.gradients(y, [x, *layer.trainable_weights], dy)
        for operation in set(x.graph.get_operations()) - forward:
            kept.update({source(t).name: source(t) for t in operation.inputs if t.op in forward})
        return gradients

    run.get_concrete_function(x, tf.ones_like(x))
    kept.pop("dy:0")
    return [t for t in kept.values() if t.op.type != "Const"]


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_backward_keeps_the_input_and_one_number_per_row(dtype, fused):
    rows = 40
    units = 64
    layer = RMSNormalization(dtype=dtype, fused=fused)
    layer.build((rows, units))
    kept = kept_for_backward(layer, tf.ones((rows, units), dtype))
    sizes = sorted(((t.dtype.name, tuple(t.shape)) for t in kept), key=str)
    assert sizes == sorted(
        [(dtype, (rows, units)), ("float32", (rows, 1)), ("float32", (units,))], key=str
    )


def test_the_count_of_kept_tensors_sees_what_another_layer_keeps():
    kept = kept_for_backward(keras.layers.RMSNormalization(), tf.ones((40, 64)))
    assert sum(t.shape == (40, 64) for t in kept) >= 2
