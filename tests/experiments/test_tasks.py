"""Every task on random data: its networks, its logs and its report."""

import importlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from experiments.data_sets.arrays import Labelled, Parts
from experiments.draw.task import binarize
from experiments.order_embeddings import data as order_embeddings
from experiments.reader import data as reader
from experiments.runs.experiment import train
from experiments.runs.run import Run, Setting
from experiments.skip_thoughts import data as skip_thoughts
from nmt.errors import UserError
from tests.experiments.data_sets.digits import digits  # noqa: F401  a fixture
from tests.experiments.runs.conftest import reproduce_whole
from tests.nmt.conftest import eagerly  # noqa: F401  a fixture
from tests.parameters import slow

ROOT = Path(__file__).parents[2]
RANDOM = np.random.default_rng(0)
SETTING = Setting(
    "small", "small", batch_size=6, updates=5, window=1, validate_every=2, options={"length": 6}
)


def images(*shape):
    """Returns a function that makes some images of 10 classes."""
    return lambda count: Labelled(
        RANDOM.normal(size=(count, *shape)).astype(np.float32), np.arange(count) % 10
    )


def pixels(count):
    return RANDOM.integers(0, 2, (count, 16)).astype(np.float32)


def lines(count):
    return RANDOM.normal(size=(count, 10, 3)).astype(np.float32)


def captions(count):
    shape = count, len(order_embeddings.CAPTIONS), order_embeddings.LONGEST
    return order_embeddings.Part(
        sparse.random(count, 7, 0.5, "csr", np.float32), RANDOM.integers(1, 9, shape)
    )


def questions(count):
    passages, asked = (
        RANDOM.integers(1, 20, (count, length)) for length in (reader.PASSAGE, reader.SENTENCE[1])
    )
    return reader.Part(passages, asked, np.arange(count) % 10)


def sentences(count):
    ids = np.full((count + 2, skip_thoughts.LONGEST + 1), 5)
    ids[:, -1] = skip_thoughts.END
    return skip_thoughts.Part(ids, 1 + np.arange(count))


GRU = {"input_gates", "input_proposal", "state_gates", "state_proposal"}
LSTM = ("input", "state", "carry")
WRITERS = {f"first {what}" for what in LSTM} | {f"second {what}" for what in LSTM}
READERS = {f"passage {what}" for what in LSTM} | {f"question {what}" for what in LSTM}
# Of each task: what makes its data, the sizes of its networks, what a validation measures, and the
# norms.
TASKS = {
    "cifar10": (
        "Classifiers",
        images(16, 16, 3),
        [(2, 3)],
        {"nll", "error"},
        {f"conv_{n}" for n in range(1, 10)},
    ),
    "draw": ("Drawers", pixels, [4, 2, 2], {"bound"}, {"encoder", "decoder"}),
    "handwriting": ("Writers", lines, [4], {"nll"}, WRITERS),
    "mnist": ("Classifiers", images(16), [6], {"nll", "error"}, {"hidden_1", "hidden_2"}),
    "order_embeddings": ("Embeddings", captions, [4, 3], {"missed", "image_rank"}, GRU),
    "reader": ("Readers", questions, [3, 4], {"nll", "error"}, READERS),
    "skip_thoughts": ("SkipThoughts", sentences, [3, 4], {"nats"}, GRU),
}
PUBLISHED_TIMES = {"cifar10", "order_embeddings", "reader"}


def task_of(name):
    return importlib.import_module(f"experiments.{name}.task")


def networks_of(name):
    kind, make, sizes, *_ = TASKS[name]
    return getattr(task_of(name), kind)(Parts(*map(make, (30, 20, 20))), *sizes)


def conditions_of(name):
    return {condition.name: condition for condition in task_of(name).EXPERIMENT.conditions}


@pytest.mark.parametrize("name", TASKS)
def test_initial_weights_depend_on_the_seed_alone(name):
    """All matrices that are drawn are equal, whatever the condition."""
    networks = networks_of(name)
    conditions = conditions_of(name)

    def drawn(kind, seed=1):
        model = networks.build(Run(conditions[kind], SETTING, seed, 0.01))
        return [each for each in model.get_weights() if each.ndim > 1 and each.any()]

    expected = drawn("none")
    for kind in conditions:
        for found, wanted in zip(drawn(kind), expected, strict=True):
            np.testing.assert_array_equal(found, wanted, err_msg=kind)
    others = zip(drawn("none", seed=2), expected, strict=True)
    assert expected and all(np.abs(one - other).max() > 0 for one, other in others)


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_everything_is_trained_measured_and_reported_once(name, tmp_path):
    networks = networks_of(name)
    conditions = [conditions_of(name)[kind] for kind in ("layernorm", "rmsnorm")]
    changed = {
        "settings": [SETTING],
        "conditions": conditions,
        "seeds": (1, 2),
        "rounds": 2,
        "load": lambda data: networks,
    }
    small = replace(task_of(name).EXPERIMENT, step_sizes=(0.003, 0.01), **changed)
    reproduce_whole(small, tmp_path)
    report = tmp_path / "runs" / "report"
    found = json.loads((report / "report.json").read_text())
    sections = ["learning", "step_sizes", "mean_share", *["baseline"] * (name == "reader"), "speed"]
    assert [each for each in found["sections"] if each != "differences"] == sections
    timed = [each for each in found["claims"] if "takes less time" in each["claim"]]
    assert len(timed) == 2 * (name in PUBLISHED_TIMES)  # XLA and plain
    assert all(text in (report / "report.md").read_text() for text in small.about)
    logs = {
        path: path.stat().st_mtime_ns
        for path in (tmp_path / "experiments" / "logs" / name).glob("*.json")
    }
    assert len(logs) == 1 + len(conditions) * (2 + len(small.seeds))  # one has the times
    small.reproduce("", so_far=False, root=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in logs} == logs


@pytest.mark.usefixtures("eagerly")
@pytest.mark.parametrize("name", ["mnist", *slow(*(name for name in TASKS if name != "mnist"))])
def test_a_log_has_losses_validations_and_shares(name, tmp_path):
    *_, measured, norms = TASKS[name]
    networks = networks_of(name)
    log = train(Run(conditions_of(name)["rmsnorm"], SETTING, 1, 0.01), networks)
    assert [each["update"] for each in log["train"]] == [1, 2, 3, 4, 5]
    assert [each["update"] for each in log["validations"]] == [2, 4, 5]
    tested = measured | {f"test_{key}" for key in measured}
    assert {"update", *tested} <= log["validations"][0].keys()
    assert log["mean_share"]["last"].keys() == norms
    assert log["mean_share"]["first"] != log["mean_share"]["last"]
    assert (
        log.keys() - {"train", "validations", "seconds", "mean_share"}
        == {"most_frequent_error"} & log.keys()
    )
    json.dumps(log)


@pytest.mark.parametrize("name", TASKS)
def test_published_values_and_times_are_of_rows(name):
    experiment = task_of(name).EXPERIMENT
    assert (
        experiment.learning.published.keys() | experiment.published_times.keys()
        <= conditions_of(name).keys()
    )


@pytest.mark.parametrize("name", TASKS)
def test_without_logs_there_is_nothing_to_report(name, tmp_path):
    with pytest.raises(UserError, match=f"no training of the task {name} is done yet"):
        replace(task_of(name).EXPERIMENT, load=pytest.fail).reproduce(
            "", so_far=True, root=tmp_path
        )


@pytest.mark.parametrize("name", ["handwriting", "order_embeddings", "reader", "skip_thoughts"])
def test_data_must_be_given(name):
    with pytest.raises(UserError, match=r"give (the|a) (file|folder)"):
        task_of(name).reproduce("", so_far=False)


def test_models_need_neither_tensorflow_nor_filelock():
    script = f"""
import importlib, sys
sys.modules["tensorflow"] = sys.modules["filelock"] = None
for name in {list(TASKS)}:
    importlib.import_module(f"experiments.{{name}}.model")
from experiments.mnist.model import CONDITIONS, build_model
import numpy as np
model = build_model(CONDITIONS[2], 0.001, 1, 4, 6)
assert np.isfinite(model.train_on_batch(np.ones((2, 4)), np.ones(2))).all()
"""
    pytest.importorskip("jax")
    environment = {"KERAS_BACKEND": "jax", "PATH": "", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_images_are_binarized_by_their_brightness_and_always_the_same(digits):  # noqa: F811
    found = binarize(str(digits), training=60)
    assert [len(part) for part in found] == [60, 20, 20]
    assert set(np.unique(found.train)) == {0.0, 1.0}
    assert found.train[np.arange(60), np.arange(60) % 10].min() == 1  # pixels of brightness 255
    np.testing.assert_array_equal(found.train, binarize(str(digits), training=60).train)


def test_inputs_of_handwriting_are_the_points_before_the_targets():
    inputs, targets = networks_of("handwriting").batch(np.array([3, 5]), SETTING)
    assert inputs.shape == targets.shape == (2, 6, 3)
    np.testing.assert_array_equal(inputs[:, 1:], targets[:, :-1])
    assert not inputs[:, 0].any()


def test_a_batch_of_skip_thoughts_has_sentences_between_their_neighbours():
    networks = networks_of("skip_thoughts")
    networks.data.train.ids[:, 0] = np.arange(len(networks.data.train.ids))
    (middle, neighbours), targets = networks.batch(np.array([0, 3]), SETTING)
    np.testing.assert_array_equal(neighbours, targets)
    assert middle[:, 0].tolist() == [1, 4]
    assert neighbours[:, :, 0].tolist() == [[0, 2], [3, 5]]
