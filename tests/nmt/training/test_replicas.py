"""Trainings by several processes on this machine: they make the weights of one process, and end
together."""

import contextlib
import json
import os
import re
import signal
import time

import numpy as np
import pytest

from nmt.errors import UserError
from nmt.storage.checkpoints import LAST
from nmt.training.replicas import Replicas, connect, read_cluster
from tests.nmt.outcomes import weights
from tests.nmt.ports import free_ports


@pytest.fixture
def begin(start, tmp_path):
    """Starts the processes of a training; each has its own words.

    Returns them; process i writes to `errors-i`.
    """

    def begin(*words_of_each):
        workers = [f"localhost:{port}" for port in free_ports(len(words_of_each))]
        started = []
        for rank, words in enumerate(words_of_each):
            config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
            variables = {"TQDM_MININTERVAL": "0.3", "TF_CONFIG": json.dumps(config)}
            first = f"os.environ |= {variables!r}"
            (tmp_path / f"errors-{rank}").unlink(missing_ok=True)
            started.append(
                start(tmp_path, words, (os.devnull, f"output-{rank}", f"errors-{rank}"), first)
            )
        return started

    return begin


def statuses(processes):
    """Waits for processes, and returns their exit statuses."""
    end = time.monotonic() + 200
    for process in processes:
        process.join(max(0, end - time.monotonic()))
    return [process.exitcode for process in processes]


def wait_for_updates(process, errors):
    """Waits until a process reports updates."""
    end = time.monotonic() + 100
    while not errors.exists() or not re.search(r" [1-9]\d*/\d+ \[", errors.read_text()):
        assert process.is_alive()
        assert time.monotonic() < end
        time.sleep(0.1)


def assert_nearly_equal(found, expected, tolerance=1e-5):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=0, atol=tolerance, err_msg=name)


@pytest.mark.parametrize(
    ("task", "index", "rank"), [("chief", 0, 0), ("worker", 0, 1), ("worker", 1, 2)]
)
def test_workers_are_counted_after_the_chief(monkeypatch, task, index, rank):
    cluster = {"chief": ["a:1"], "worker": ["b:1", "c:1"]}
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": task, "index": index}})
    )
    assert read_cluster() == (["a:1", "b:1", "c:1"], rank)


@pytest.mark.parametrize("config", ["", "{}", '{"cluster": {}}'])
def test_a_process_may_have_no_cluster(monkeypatch, config):
    monkeypatch.setenv("TF_CONFIG", config)
    assert read_cluster() == ([], 0)


@pytest.mark.parametrize(
    "config",
    [
        "worker 0",
        "[]",
        "[" * 100_000,
        '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 1e999}}',
        '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 2}}',
        '{"cluster": {"worker": ["a:1", "b:99999999999"]}, "task": {"type": "worker", "index": 0}}',
        '{"cluster": {"worker": ["a:1", "b"]}, "task": {"type": "worker", "index": 0}}',
        '{"cluster": {"worker": [1, 2]}, "task": {"type": "worker", "index": 0}}',
    ],
)
def test_a_damaged_cluster_is_refused(monkeypatch, config):
    monkeypatch.setenv("TF_CONFIG", config)
    with pytest.raises(UserError, match="it must look like"):
        read_cluster()


def test_one_process_is_not_connected(monkeypatch):
    for config in (
        "",
        '{"cluster": {"worker": ["localhost:1"]}, "task": {"type": "worker", "index": 0}}',
    ):
        monkeypatch.setenv("TF_CONFIG", config)
        assert (connect().count, connect().is_chief) == (1, True)
    alone = Replicas()
    assert alone.any(True)
    assert alone.from_chief([1.5]) == [1.5]
    alone.require_same({"options": 1})


RNN = ("--model_type", "rnn", "--layer_normalization_type", "layernorm")
TRANSFORMER = (
    "--model_type",
    "transformer",
    "--transformer_num_heads",
    2,
    "--transformer_ffn_hidden_size",
    8,
)
TRANSFORMER += ("--transformer_enc_depth", 1, "--transformer_dec_depth", 1)
TRANSFORMER += tuple(
    f"--transformer_dropout_{part}=0" for part in ("embeddings", "residual", "relu", "attn")
)


# The number of processes, and options; the quick one is the first.
TRAININGS = {
    "loss of a token": (2, ("--loss_function", "per-token-cross-entropy")),
    "loss of a sentence": (2, ("--loss_function", "cross-entropy")),
    "rnn": (2, RNN),
    "tokens in parts": (2, (*RNN, "--token_batch_size", 60, "--gradient_aggregation_steps", 2)),
    "transformer": (2, (*TRANSFORMER, "--layer_normalization_type", "layernorm")),
    "four": (4, TRANSFORMER),
    "tokens": (2, (*TRANSFORMER, "--token_batch_size", 60)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAININGS)
def test_processes_train_as_one(begin, training, run, compiled, tmp_path, name):
    """Batches of 10 sentences are shared equally by no two parts. The chief alone writes."""
    # Few updates, because each multiplies what rounding has changed before.
    count, options = TRAININGS[name]
    words = [*training, "--finish_after", 20, "--batch_size", 10, "--learning_rate", 1e-3, *options]
    words += ["--valid_freq", 20]
    assert statuses(begin(*[[*words, "-m", "many"]] * count)) == [0] * count
    assert run(*words, "-m", "one")[0] == 0
    assert_nearly_equal(weights(tmp_path / "many" / LAST), weights(tmp_path / "one" / LAST))
    assert "stopped after update 20" in (tmp_path / "errors-0").read_text()
    assert "update" not in (tmp_path / "errors-1").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        (*RNN, "--rnn_dropout_hidden", 0.2, "--rnn_dropout_source", 0.1),
        (*TRANSFORMER, "--transformer_dropout_relu", 0.3),
    ],
    ids=["rnn", "transformer"],
)
def test_parts_have_the_same_dropout_in_any_process(
    begin, training, run, compiled, tmp_path, options
):
    """Two processes train as one that splits its batches in two, and not as one that does not."""
    words = [*training, "--finish_after", 50, "--batch_size", 10, "--learning_rate", 1e-3, *options]
    assert statuses(begin(*[[*words, "-m", "two"]] * 2)) == [0, 0]
    for model, steps in (("parts", 2), ("whole", 1)):
        assert run(*words, "-m", model, "--gradient_aggregation_steps", steps)[0] == 0
    assert_nearly_equal(weights(tmp_path / "two" / LAST), weights(tmp_path / "parts" / LAST))
    two = weights(tmp_path / "two" / LAST)
    whole = weights(tmp_path / "whole" / LAST)
    assert max(abs(two[name] - whole[name]).max() for name in two) > 1e-3


@pytest.mark.slow
def test_different_options_are_refused(begin, training, tmp_path):
    processes = begin([*training, "-m", "model"], [*training, "-m", "model", "--clip_c", 2])
    assert statuses(processes) == [2, 2]
    said = (tmp_path / "errors-1").read_text().splitlines()[-1]
    assert said.startswith("nmt: the 2 processes of this ")
    assert not (tmp_path / "model" / "config.json").exists()


@pytest.mark.slow
def test_a_signal_to_one_ends_all_and_another_number_resumes(
    begin, training, run, compiled, tmp_path
):
    words = [*training, "-m", "model", "--finish_after", 2000, "--valid_freq", 2000]
    processes = begin(words, words)
    wait_for_updates(processes[0], tmp_path / "errors-0")
    os.kill(processes[1].pid, signal.SIGTERM)
    assert statuses(processes) == [143, 143]
    assert "the same command resumes" in (tmp_path / "errors-0").read_text()
    assert run(*words)[0] == 0
    assert run(*words, "-m", "whole")[0] == 0
    assert_nearly_equal(
        weights(tmp_path / "model" / LAST), weights(tmp_path / "whole" / LAST), 1e-4
    )


@pytest.mark.slow
def test_ctrl_c_ends_a_process_that_waits_for_the_others(start, training, tmp_path):
    config = {
        "cluster": {"worker": [f"localhost:{port}" for port in free_ports(2)]},
        "task": {"type": "worker", "index": 0},
    }
    process = start(
        tmp_path,
        [*training, "-m", "model"],
        first=f"os.environ['TF_CONFIG'] = {json.dumps(config)!r}",
    )
    process.join(15)
    assert process.is_alive()
    os.kill(process.pid, signal.SIGINT)
    assert statuses([process]) == [-signal.SIGINT]


@pytest.mark.slow
@pytest.mark.parametrize("killed", [0, 1])
def test_a_training_of_killed_processes_ends_as_one_that_was_never_interrupted(
    begin, training, tmp_path, killed
):
    words = [*training, "--finish_after", 300, "--save_freq", 10, "--valid_freq", 100]
    whole, parts = ([*words, "-m", name] for name in ("whole", "parts"))
    assert statuses(begin(whole, whole)) == [0, 0]
    processes = begin(parts, parts)
    wait_for_updates(processes[0], tmp_path / "errors-0")
    os.kill(processes[killed].pid, signal.SIGKILL)
    assert statuses(processes)[1 - killed] == 2
    said = (tmp_path / f"errors-{1 - killed}").read_text().splitlines()[-1]
    assert said.startswith("nmt: another process of this")
    assert len(said) < 600
    assert statuses(begin(parts, parts)) == [0, 0]
    assert_nearly_equal(weights(tmp_path / "parts" / LAST), weights(tmp_path / "whole" / LAST), 0)


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_machine_ends_the_others_with_one_line(begin, training, tmp_path, lost):
    """A stopped process answers nothing and closes no connection, as a machine without power."""
    words = [*training, "--finish_after", 100_000, "--valid_freq", 100_000, "-m", "model"]
    processes = begin(words, words)
    wait_for_updates(processes[0], tmp_path / "errors-0")
    os.kill(processes[lost].pid, signal.SIGSTOP)
    try:
        processes[1 - lost].join(60)
        assert processes[1 - lost].exitcode == 2
    finally:
        processes[lost].kill()
    said = (tmp_path / f"errors-{1 - lost}").read_text().splitlines()[-1]
    assert said.startswith("nmt: another process of this")


@pytest.mark.parametrize("passed", [0, 1])
def test_a_broken_connection_matters_only_before_all_is_written(passed):
    class Breaking(Replicas):
        left = passed

        def any(self, flag):
            if not self.left:
                raise UserError("another process has ended")
            self.left -= 1
            return flag

    with contextlib.nullcontext() if passed else pytest.raises(UserError):
        Breaking().final_barrier()
