"""Learning schedules against their formulas, and in training."""

import numpy as np
import pytest

from nmt.config import make_config
from nmt.training.schedule import LearningRate
from nmt.training.update import Update
from tests.nmt.bigrams import Bigrams
from tests.nmt.training.test_update import BATCH, FILES

STEPS = np.arange(1, 200)


def make(**options):
    return make_config({**FILES, "dictionaries": ["-", "-"], **options})


def rates(config):
    schedule = LearningRate(config)
    return [float(schedule(step)) for step in STEPS - 1]


def test_the_transformer_schedule_equals_the_papers():
    config = make(learning_schedule="transformer", warmup_steps=40, state_size=64)
    expected = 64**-0.5 * np.minimum(STEPS**-0.5, STEPS * 40**-1.5)
    np.testing.assert_allclose(rates(config), expected, rtol=1e-5)


@pytest.mark.parametrize("plateau", [0, 30])
def test_warmup_plateau_and_decay(plateau):
    options = {"warmup_steps": 40, "plateau_steps": plateau, "learning_rate": 0.5}
    found = rates(make(learning_schedule="warmup-plateau-decay", **options))
    rise, fall = 0.5 * STEPS / 40, 0.5 * np.sqrt((40 + plateau) / STEPS)
    expected = np.where(STEPS < 40, rise, np.minimum(0.5, fall))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("schedule", ["constant", "warmup-plateau-decay", "transformer"])
def test_a_factor_multiplies_every_schedule(schedule):
    warmup = {} if schedule == "constant" else {"warmup_steps": 40}
    rate = LearningRate(make(learning_schedule=schedule, **warmup))
    before = [float(rate(step)) for step in STEPS]
    rate.factor.assign(0.25)
    np.testing.assert_allclose([float(rate(step)) for step in STEPS], np.multiply(before, 0.25), rtol=1e-6)


def test_an_update_takes_the_rate_of_its_number():
    """Adam's first step is as large as the learning rate; doubling the warm-up halves the rate of the first update."""
    changes = []
    for warmup in (4, 8):
        config = make(learning_schedule="warmup-plateau-decay", warmup_steps=warmup, learning_rate=0.1)
        model = Bigrams(config, 6, 6)
        Update(model, config)(BATCH, 1)
        changes.append(np.abs(model.table).max())
    np.testing.assert_allclose(changes, [0.1 / 4, 0.1 / 8], rtol=0.01)
