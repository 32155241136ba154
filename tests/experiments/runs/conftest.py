"""A small task: a network that learns the sign of a sum."""

import keras
import numpy as np
import pytest

from experiments.data_sets.arrays import Parts
from experiments.reporting.speed import PROCESSES
from experiments.runs.experiment import Experiment
from experiments.runs.learning import Learning
from experiments.runs.networks import Networks
from experiments.runs.probes import mean_share
from experiments.runs.run import Condition, Run, Setting
from experiments.runs.store import LogStore, Restart
from rmsnorm_tf import RMSNormalization

SETTING = Setting("small", "small batches", batch_size=4, updates=10, window=2, validate_every=4)
CONDITIONS = [
    Condition(
        "layernorm",
        "LayerNorm",
        lambda name: keras.layers.LayerNormalization(name=name),
        paper=True,
    ),
    Condition("rmsnorm", "RMSNorm", lambda name: RMSNormalization(name=name), paper=True),
]


def build(condition=CONDITIONS[1], seed=1, step_size=0.01):
    keras.utils.set_random_seed(seed)
    inputs = keras.Input((3,))
    sums = keras.layers.Dense(8, name="sums")(inputs)
    hidden = keras.layers.Dropout(0.25)(keras.layers.ReLU()(condition.norm("norm")(sums)))
    model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(optimizer=keras.optimizers.Adam(step_size), loss=loss, jit_compile=False)
    return model


class Signs(Networks):
    """The networks of the task. 60 examples are for training, 40 for validation."""

    def __init__(self):
        inputs = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
        super().__init__(Parts(inputs[:60], inputs[60:]))

    def build(self, run):
        return build(run.condition, run.seed, run.step_size)

    def batch(self, numbers, setting):
        return with_signs(self.data.train[numbers])

    def measure(self, model, part):
        return {"nll": float(model.evaluate(*with_signs(part), verbose=0))}

    def mean_shares(self, model):
        return mean_share(model, ["sums"], self.data.valid)


def with_signs(inputs):
    return inputs, (inputs.sum(1, keepdims=True) > 0).astype(np.float32)


EXPERIMENT = Experiment(
    name="small",
    title="Small",
    conditions=CONDITIONS,
    settings=[SETTING],
    step_sizes=(0.003, 0.01, 0.03),
    metric="nll",
    metric_label="loss",
    learning=Learning("Learning", "", [], [], []),
    load=lambda data: Signs(),
    rounds=2,
)


@pytest.fixture
def run():
    return Run(CONDITIONS[1], SETTING, seed=1, step_size=0.01)


@pytest.fixture
def store(tmp_path):
    return LogStore("small", tmp_path)


def reproduce_whole(experiment, root):
    """Reproduces a task to its end.

    The program would start again after each process that measures times.
    """
    for _ in range(PROCESSES):
        with pytest.raises(Restart):
            experiment.reproduce("", so_far=False, root=root)
    experiment.reproduce("", so_far=False, root=root)
