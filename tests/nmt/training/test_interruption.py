"""Trainings that are killed or stopped at any moment: a resumed training equals an uninterrupted
one."""

import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import time

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.compat.proto.event_pb2 import Event

from tests.parameters import slow

# Library functions in the middle of an update, a validation or a save: name, and text that an
# argument must contain.
MOMENTS = {
    "an update": ("keras.optimizers.Adam.apply", ""),
    "a validation, after its translations": ("sacrebleu.BLEU.corpus_score", ""),
    "saving, in the middle of a file": ("numpy.lib.format.write_array", ""),
    "saving, before the file has its name": ("os.fsync", ""),
    "saving, between the last and the best": ("pathlib.Path.replace", "last.npz"),
    "saving, before progress.json": ("pathlib.Path.replace", "best.npz"),
    "saving, after all of it": ("pathlib.Path.replace", "progress.json"),
    "logging": ("tensorflow.summary.scalar", ""),
}
# Runs an action after the first call of such a function.
AFTER = """
import os, pathlib, signal, time
import filelock, keras, numpy, sacrebleu, tensorflow
owner, name = {function!r}.rsplit(".", 1)
owner = eval(owner)
function = getattr(owner, name)
def mark_and_wait():
    open("begun", "w").close()
    while not os.path.exists("sent"):
        time.sleep(0.01)
def and_then(*arguments, **options):
    found = function(*arguments, **options)
    if {part!r} in str(arguments):
        {action}
    return found
setattr(owner, name, and_then)
"""
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
MARK = "open('begun', 'w').close()"


def after(moment, action):
    """Returns code that a process runs first, so that it runs an action at a moment."""
    function, part = moment
    return AFTER.format(function=function, part=part, action=action)


def outcome(directory):
    """Returns weights, Adam's moments, progress and logs of a training, without times."""
    found = {}
    for name in ("last", "best"):
        with np.load(directory / "model" / f"{name}.npz") as file:
            found |= {f"{name} {key}": file[key] for key in file.files if key != "state"}
            found[f"{name} state"] = timeless(json.loads(str(file["state"])))
    found["progress"] = timeless(json.loads((directory / "model" / "progress.json").read_text()))
    logs = (
        directory / "model" / "logs"
    ).iterdir()  # a resumed training may repeat figures of the first
    events = [event for log in logs for event in events_of(log)]
    logged = [
        (event.step, value.tag, value.tensor) for event in events for value in event.summary.value
    ]
    shown = [
        (step, tag, tensor) for step, tag, tensor in logged if tag != "update/tokens_per_second"
    ]
    found["logs"] = sorted(
        {(step, tag, float(tf.make_ndarray(tensor))) for step, tag, tensor in shown}
    )
    return found


def events_of(log):
    with contextlib.suppress(
        tf.errors.DataLossError
    ):  # the last record of a killed process may be incomplete
        for record in tf.data.TFRecordDataset(str(log)):
            yield Event.FromString(record.numpy())


def timeless(state):
    without = {key: value for key, value in state.items() if key != "seconds"}
    return {**without, "validations": [{**each, "seconds": None} for each in state["validations"]]}


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.fixture(params=["training", pytest.param("rnn_training", marks=pytest.mark.slow)])
def train(start, tmp_path, request):
    """Starts the training in a model directory and returns its process."""
    words = request.getfixturevalue(request.param)

    def train(name, first="", *more):
        (tmp_path / name).mkdir(exist_ok=True)
        files = ("/dev/null", f"{name}/output", f"{name}/errors")
        return start(tmp_path, [*words, *more, "--model", f"{name}/model"], files, first)

    return train


@pytest.fixture
def finish(train, tmp_path):
    """Trains to the end and returns the outcome."""

    def finish(name, *more):
        process = train(name, "", *more)
        process.join()
        assert process.exitcode == 0, (tmp_path / name / "errors").read_text()
        return outcome(tmp_path / name)

    return finish


def wait_for(path, process):
    while not path.exists() and process.is_alive():
        time.sleep(0.01)


def stop(process, number):
    """Sends the signal and checks the exit status, unless the process has ended by itself."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, number)
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL if number == signal.SIGKILL else 128 + number)


@pytest.mark.slow
def test_a_training_resumes_after_sigkill_at_every_kind_of_moment(train, finish):
    expected = finish("uninterrupted")
    for name, moment in MOMENTS.items():
        process = train("model", after(moment, KILL))
        process.join()
        assert process.exitcode == -signal.SIGKILL, name
    assert_equal(finish("model"), expected)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_training_resumes_after_twenty_random_interruptions(train, finish, tmp_path, number):
    """Moments are counted from the first lock or from the first update, so that both parts of a run
    are interrupted.

    A training that ends before its moment is compared with the expected one, and another begins.
    """
    expected = finish("uninterrupted")
    stopped = 0
    while stopped < 20:
        (tmp_path / "begun").unlink(missing_ok=True)
        moment = (("filelock.FileLock.acquire", ""), MOMENTS["an update"])[stopped % 2]
        process = train("model", after(moment, MARK))
        wait_for(tmp_path / "begun", process)
        time.sleep(random.uniform(0, 3))
        stop(process, number)
        if "stopped after update 30" in (tmp_path / "model" / "errors").read_text(errors="replace"):
            assert_equal(outcome(tmp_path / "model"), expected)
            shutil.rmtree(tmp_path / "model")
        else:
            stopped += 1
    assert_equal(finish("model"), expected)


@pytest.mark.slow
def test_a_second_signal_in_the_middle_of_an_update(train, finish, tmp_path):
    """Another SIGTERM lets the update end, and saves it.

    A Ctrl-C then ends the training at once.
    """
    expected = finish("uninterrupted")
    for first, second in itertools.product((signal.SIGTERM, signal.SIGINT), repeat=2):
        saves = second == signal.SIGTERM
        both = "; ".join(f"os.kill(os.getpid(), {int(number)})" for number in (first, second))
        process = train("model", after(MOMENTS["an update"], both))
        process.join()
        assert process.exitcode == 128 + (first if saves else second)
        assert ("interrupted after update" in (tmp_path / "model" / "errors").read_text()) is saves
    assert_equal(finish("model"), expected)


def test_sigterm_before_the_first_update_ends_with_status_143(train, tmp_path):
    process = train("model", after(("filelock.FileLock.acquire", ""), "mark_and_wait()"))
    wait_for(tmp_path / "begun", process)
    os.kill(process.pid, signal.SIGTERM)
    (tmp_path / "sent").touch()
    process.join()
    assert process.exitcode == 143
    assert not (tmp_path / "model" / "model" / "last.npz").exists()


def assert_ends_at_once(train, finish, tmp_path, number, waits, *more):
    """Asserts that a training that waits for an hour ends with its last update, and goes on as
    if uninterrupted."""
    expected = finish("uninterrupted", *more)
    process = train("model", waits, *more)
    wait_for(tmp_path / "begun", process)
    os.kill(process.pid, number)
    process.join(600)
    assert process.exitcode == 128 + number
    assert "Traceback" not in (tmp_path / "model" / "errors").read_text()
    assert_equal(finish("model", *more), expected)


COMPILES_FOR_LONG = """
import time
from nmt.training.update import Update
gradients = Update.gradients
def gradients_after_long(update, batch, number):
    if batch.source.shape[1] > 8:
        open("begun", "w").close()
        time.sleep(3600)
    return gradients(update, batch, number)
Update.gradients = gradients_after_long
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, *slow(signal.SIGINT)])
def test_a_signal_during_a_compilation_ends_a_training_with_its_last_update(
    train, finish, tmp_path, number
):
    lines = (tmp_path / "train.en").read_text()
    for side in ("en", "de"):
        (tmp_path / f"train.{side}").write_text(lines + "a b c d a b c d\n" * 16)
    assert_ends_at_once(train, finish, tmp_path, number, COMPILES_FOR_LONG, "--maxlen", 9)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_a_validation_ends_a_training_with_its_last_update(
    train, finish, tmp_path, number
):
    wait = f"{MARK}; __import__('time').sleep(3600)"
    moment = MOMENTS["a validation, after its translations"]
    assert_ends_at_once(train, finish, tmp_path, number, after(moment, wait))
