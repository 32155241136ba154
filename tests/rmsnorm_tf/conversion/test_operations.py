"""What each kind of operation does to the mean, and to the order of channels."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from rmsnorm_tf.conversion.folding.rules import RULES
from tests.folding import fold, layers, norm
from tests.operations import CHANNELS, OPERATIONS, ROWS, Apply, Scale
from tests.parameters import slow


def behind(names, *between):
    """A norm behind each of these operations, and what stands between them."""
    x = keras.Input((ROWS, CHANNELS), name="x")
    outputs = []
    for name in names:
        dense = layers.EinsumDense(
            "abc,cd->abd", (ROWS, CHANNELS), bias_axes="d", name=f"dense-{name}"
        )
        y = Apply(name, name=name)(dense(x))
        for make in between:
            y = make(name=f"{make.__name__}-{name}")(y)
        outputs.append(norm(f"norm-{name}")(y))
    return keras.Model(x, outputs)


def folded(names, *between):
    report = fold(behind(names, *between))
    return {name for name in names if report[f"norm-{name}"].converted}


@pytest.mark.slow
def test_a_norm_is_folded_behind_operations_that_carry_the_mean():
    assert folded(OPERATIONS) == {name for name, operation in OPERATIONS.items() if operation.folds}


def test_a_gain_stays_behind_operations_that_change_the_order():
    assert folded(["roll", "reverse", "stride-backwards"], Scale) == set()


@pytest.mark.slow
def test_a_gain_moves_through_operations_that_keep_the_order():
    carrying = {name: operation for name, operation in OPERATIONS.items() if operation.folds}
    least = {
        "bias",
        "cast",
        "sub",
        "reshape",
        "transpose",
        "gather-rows",
        "mean",
        "matmul",
        "einsum",
        "conv",
    }
    assert (
        least
        <= folded(carrying, Scale)
        <= {name for name, operation in carrying.items() if operation.ordered}
    )


def test_each_kind_of_operation_with_a_rule_is_tried():
    model = behind([name for name, operation in OPERATIONS.items() if operation.folds])
    call = tf.function(model).get_concrete_function(tf.TensorSpec((None, ROWS, CHANNELS)))
    assert {operation.type for operation in call.graph.get_operations()} >= RULES.keys()


def chains(seed, count):
    """Returns norms behind random chains of operations, and the operations by the norm's name."""
    rng = np.random.default_rng(seed)
    x = keras.Input((ROWS, CHANNELS), name="x")
    made = {}
    outputs = []
    for number in range(count):
        y = layers.EinsumDense(
            "abc,cd->abd", (ROWS, CHANNELS), bias_axes="d", name=f"dense-{number}"
        )(x)
        names = []
        while len(names) < 3 and y.shape[1:] == (ROWS, CHANNELS):
            names.append(rng.choice(list(OPERATIONS)))
            y = Apply(names[-1], name=f"{number}-{len(names)}-{names[-1]}")(y)
            if rng.integers(3) == 0 and y.shape[-1] == CHANNELS:
                names.append("gain")
                y = Scale(name=f"gain-{number}-{len(names)}")(y)
        made[f"norm-{number}"] = names
        outputs.append(norm(f"norm-{number}")(y))
    return keras.Model(x, outputs), made


@pytest.mark.parametrize("seed", [0, *slow(*range(1, 15))])
def test_chains_of_operations(seed):
    model, made = chains(seed, 25)
    report = fold(model)
    for name, operations in made.items():
        if "gain" not in operations and all(OPERATIONS[each].folds for each in operations):
            assert report[name].converted, operations
