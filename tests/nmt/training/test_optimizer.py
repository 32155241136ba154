"""Learning schedules against their formulas, and in training; Adam against Keras's."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from nmt.config import make_config
from nmt.training.optimizer import Adam, LearningRate
from nmt.training.update import Update
from tests.nmt.bigrams import Bigrams
from tests.nmt.training.scripted import BATCH, FILES, TRANSFORMER

STEPS = np.arange(1, 200)


def make(**options):
    return make_config({**FILES, "dictionaries": ["-", "-"], **options})


def rates(config):
    return [float(LearningRate(config)(step)) for step in STEPS - 1]


def test_the_transformer_schedule_equals_the_papers():
    config = make(learning_schedule="transformer", warmup_steps=40, state_size=64)
    expected = 64**-0.5 * np.minimum(STEPS**-0.5, STEPS * 40**-1.5)
    np.testing.assert_allclose(rates(config), expected, rtol=1e-5)


@pytest.mark.parametrize("plateau", [0, 30])
def test_warmup_plateau_and_decay(plateau):
    options = {"warmup_steps": 40, "plateau_steps": plateau, "learning_rate": 0.5}
    found = rates(make(learning_schedule="warmup-plateau-decay", **options))
    rise = 0.5 * STEPS / 40
    fall = 0.5 * np.sqrt((40 + plateau) / STEPS)
    expected = np.where(STEPS < 40, rise, np.minimum(0.5, fall))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_constant_schedule_is_constant():
    np.testing.assert_array_equal(rates(make(learning_rate=0.5)), np.full(len(STEPS), 0.5))


@pytest.mark.parametrize("schedule", ["constant", "warmup-plateau-decay", "transformer"])
def test_a_factor_multiplies_every_schedule(schedule):
    warmup = {} if schedule == "constant" else {"warmup_steps": 40}
    rate = LearningRate(make(learning_schedule=schedule, **warmup))
    before = [float(rate(step)) for step in STEPS]
    rate.factor.assign(0.25)
    np.testing.assert_allclose(
        [float(rate(step)) for step in STEPS], np.multiply(before, 0.25), rtol=1e-6
    )


@pytest.mark.slow
def test_an_update_takes_the_rate_of_its_number():
    """Adam's first step is as large as the learning rate.

    Doubling the warm-up halves the rate of the first update.
    """
    changes = []
    for warmup in (4, 8):
        config = make(
            learning_schedule="warmup-plateau-decay", warmup_steps=warmup, learning_rate=0.1
        )
        model = Bigrams(config, 6, 6)
        Update(model, config)(BATCH, 1)
        changes.append(np.abs(model.table).max())
    np.testing.assert_allclose(changes, [0.1 / 4, 0.1 / 8], rtol=0.01)


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_adam_equals_that_of_keras(decay):
    """Gradients from 1e-6 to 1e6, also inside a traced function; a vector has no decay."""
    options = {"adam_beta1": 0.8, "adam_beta2": 0.97, "adam_epsilon": 1e-5, "weight_decay": decay}
    random = np.random.default_rng(0)
    start = [random.normal(size=shape).astype("float32") for shape in ([5, 3], [4])]
    ours = list(map(keras.Variable, start))
    theirs = list(map(keras.Variable, start))
    config = make(learning_rate=0.1, **options)
    adam = Adam(config, ours)
    expected = keras.optimizers.Adam(
        LearningRate(config), 0.8, 0.97, 1e-5, weight_decay=decay or None
    )
    expected.exclude_from_weight_decay(theirs[1:])
    expected.build(theirs)
    apply = tf.function(adam.apply, autograph=False)
    for size in (1e-6, 1.0, 1e6, 0.0, 1e-3):
        gradients = [
            tf.constant(size * random.normal(size=value.shape), tf.float32) for value in start
        ]
        apply(gradients)
        expected.apply(gradients)
        for found, value in zip(
            [*ours, *adam.variables], [*theirs, *expected.variables], strict=True
        ):
            np.testing.assert_allclose(found, value, rtol=2e-5, atol=1e-6 * np.abs(value).max())


def test_the_learning_rate_that_is_told_is_that_of_the_last_update(make_bigrams_update):
    update, _ = make_bigrams_update(learning_schedule="warmup-plateau-decay", warmup_steps=4)
    told = [update(BATCH, number) and update.learning_rate for number in (1, 2)]
    assert told == pytest.approx([0.1 / 4, 0.1 * 2 / 4])


@pytest.mark.slow
def test_weight_decay_leaves_gains_and_biases(make_update):
    """An update at a learning rate of 0.1 with a decay of 1 takes a tenth of each matrix more."""
    found = []
    for decay in (0.0, 1.0):
        update, model = make_update(weight_decay=decay, learning_rate=0.1, **TRANSFORMER)
        before = [weight.numpy().copy() for weight in model.trainable_variables]
        update(BATCH, 1)
        found.append([weight.numpy().copy() for weight in model.trainable_variables])
    assert {len(each.shape) for each in before} == {1, 2}
    for old, plain, decayed in zip(before, *found, strict=True):
        np.testing.assert_allclose(
            plain - decayed, 0.1 * old if len(old.shape) > 1 else 0 * old, atol=1e-6
        )
