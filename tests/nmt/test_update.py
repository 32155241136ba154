"""One update: what changes, and what does not when the loss or its gradient is not finite."""

import numpy as np
import tensorflow as tf

from nmt.config import Config
from nmt.data import encode_pairs
from nmt.update import Update


def infinite_gradient(costs, weight):
    """Adds the square root of zero."""
    return costs + tf.sqrt(tf.reduce_sum(weight) * 0.0)


BROKEN = [
    lambda costs, weight: costs * np.nan,
    lambda costs, weight: costs * np.inf,
    infinite_gradient,
    lambda costs, weight: costs,  # in order
]


def test_a_loss_or_a_gradient_that_is_not_finite_changes_nothing(make_model, vocabulary):
    """Neither a weight nor a moment nor the number of updates that Adam goes by."""
    model = make_model("none")
    costs, weight = model.costs, model.trainable_variables[0]

    def broken_costs(*batch, dropout_seed, **options):
        right = costs(*batch, dropout_seed=dropout_seed, **options)
        return tf.switch_case(dropout_seed[1], [lambda change=change: change(right, weight) for change in BROKEN])

    model.costs = broken_costs
    update = Update(model, Config())
    before = [variable.numpy() for variable in update.variables]
    batch = encode_pairs([(b"a b", b"c"), (b"d", b"d a")], vocabulary, vocabulary)
    for number in range(len(BROKEN)):
        loss, tokens, norm = update(batch, number)
        in_order = number == len(BROKEN) - 1
        assert tokens == 2 + 3
        assert np.isfinite([loss, norm]).all() == in_order
        assert all(map(np.array_equal, before, update.variables)) != in_order
