"""Every kind of operation that a fold may look through: what it does to the mean, and to the order of channels."""

import keras
import tensorflow as tf

from rmsnorm_tf.conversion.folding.rules import RULES
from tests.folding import fold, layers, norm
from tests.operations import CHANNELS, OPERATIONS, ROWS, Apply, Scale


def behind(names, *between):
    """A norm behind each of these operations, and what stands between them."""
    x = keras.Input((ROWS, CHANNELS), name="x")
    outputs = []
    for name in names:
        dense = layers.EinsumDense("abc,cd->abd", (ROWS, CHANNELS), bias_axes="d", name=f"dense-{name}")
        y = Apply(name, name=name)(dense(x))
        for make in between:
            y = make(name=f"{make.__name__}-{name}")(y)
        outputs.append(norm(f"norm-{name}")(y))
    return keras.Model(x, outputs)


def folded(names, *between):
    _, report = fold(behind(names, *between))
    return {name for name in names if report[f"norm-{name}"].converted}


def test_a_norm_is_folded_behind_operations_that_carry_the_mean():
    assert folded(OPERATIONS) == {name for name, operation in OPERATIONS.items() if operation.folds}


def test_a_gain_moves_through_operations_that_keep_the_order():
    carrying = {name: operation for name, operation in OPERATIONS.items() if operation.folds}
    assert folded(carrying, Scale) == {name for name, operation in carrying.items() if operation.ordered}


def test_each_kind_of_operation_with_a_rule_is_tried():
    model = behind([name for name, operation in OPERATIONS.items() if operation.folds])
    call = tf.function(model).get_concrete_function(tf.TensorSpec((None, ROWS, CHANNELS)))
    assert {operation.type for operation in call.graph.get_operations()} >= RULES.keys()
