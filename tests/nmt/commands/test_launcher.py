"""Several processes of a training on this machine:

`--processes`, and without it where there are several GPUs.
"""

import json
import os
import sys
import time
from pathlib import Path

import pytest

from tests.nmt.outcomes import refused
from tests.nmt.ports import free_ports


def status_of(process):
    """Waits for a process, and returns its exit status."""
    process.join(200)
    return process.exitcode


@pytest.mark.slow
def test_train_starts_processes_and_returns_their_status(start, training, tmp_path):
    """The dictionaries, which only the processes read, are missing."""
    (tmp_path / "words.json").unlink()
    process = start(tmp_path, ["train", "--processes", 2, "-m", "model", *launched(training)])
    assert status_of(process) == 2
    assert (tmp_path / "errors").read_text().count("words.json") == 2


def launched(training):
    """Returns the options of a training whose model the processes of `launch` know."""
    at = training.index("--model_type")
    return [*training[1:at], *training[at + 2 :]]


def test_wrong_options_are_refused_before_processes_start(run, training):
    assert "nmt: --maxlen is 0; " in refused(
        run(*training, "--processes", 2, "-m", "model", "--maxlen", 0)
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_are_not_asked_for_in_a_cluster(run, training, monkeypatch, workers):
    cluster = {"worker": [f"localhost:{port}" for port in free_ports(workers)]}
    monkeypatch.setenv(
        "TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}})
    )
    status, _, errors = run(*training, "--processes", 2, "-m", "model")
    assert (
        status,
        errors.startswith(f"nmt: TF_CONFIG names the {workers} processes of this training"),
    ) == (2, True)


GPUS = (
    "import tensorflow as tf; "
    "tf.config.list_physical_devices = lambda kind=None: ['one', 'another'] * (kind == 'GPU')"
)


@pytest.fixture
def start_for_gpus(start, tmp_path):
    """Starts a command that sees two GPUs, and a shell script in place of Python."""

    def begin(words, script, named=None):
        python = tmp_path / "python"
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
        variable = (
            f"['CUDA_VISIBLE_DEVICES'] = {named!r}" if named else ".pop('CUDA_VISIBLE_DEVICES')"
        )
        return start(
            tmp_path, words, first=f"{GPUS}; sys.executable = {str(python)!r}; os.environ{variable}"
        )

    return begin


@pytest.mark.slow
def test_each_process_has_a_gpu_of_its_own(start_for_gpus, training, tmp_path):
    script = 'echo "$CUDA_VISIBLE_DEVICES $TF_CONFIG" > given-$CUDA_VISIBLE_DEVICES'
    words = ["train", "--processes", 2, "-m", "model", *launched(training)]
    assert status_of(start_for_gpus(words, script, "3,5")) == 0
    for rank, gpu in enumerate("35"):
        own, config = (tmp_path / f"given-{gpu}").read_text().split(" ", 1)
        assert (own, json.loads(config)["task"]["index"]) == (gpu, rank)
    assert status_of(start_for_gpus([*words[:2], 3, *words[3:]], script, "3,5")) == 2
    assert "--processes 3 needs 3 GPUs; " in (tmp_path / "errors").read_text()


def test_train_starts_a_process_for_each_gpu(start_for_gpus, training, tmp_path):
    """Each gets the options of the command as a file."""
    words = ["train", "-m", "model", *launched(training), "--maxlen", 7]
    script = 'echo "$@" > given-$CUDA_VISIBLE_DEVICES; cat "$7" > options-$CUDA_VISIBLE_DEVICES'
    assert status_of(start_for_gpus(words, script)) == 0
    for gpu in "01":
        given = (tmp_path / f"given-{gpu}").read_text()
        assert given.startswith("-m nmt train -m model --config ")
        assert json.loads((tmp_path / f"options-{gpu}").read_text())["maxlen"] == 7
    said = (tmp_path / "errors").read_text()
    assert "on 2 GPUs, " in said and "--processes" in said


def test_train_returns_the_status_of_a_process_that_failed(start_for_gpus, training):
    script = "[ $CUDA_VISIBLE_DEVICES = 5 ] && exit 7; exit 0"
    assert (
        status_of(start_for_gpus(["train", "-m", "model", *launched(training)], script, "3,5")) == 7
    )


@pytest.mark.slow
def test_a_killed_process_ends_the_others_and_is_named(start_for_gpus, training, tmp_path):
    """The other one waits, as a process does that expects values of the killed one."""
    script = "[ $CUDA_VISIBLE_DEVICES = 5 ] && kill -TERM $$; exec sleep 100"
    begun = time.monotonic()
    assert (
        status_of(start_for_gpus(["train", "-m", "model", *launched(training)], script, "3,5"))
        == 143
    )
    assert time.monotonic() - begun < 60
    last = (tmp_path / "errors").read_text().splitlines()[-1]
    assert last.startswith("process 2 was killed by SIGTERM, ")


@pytest.mark.slow
def test_no_process_is_killed_before_the_first_has_saved(start_for_gpus, training, tmp_path):
    """The second ends at once, the first after more than the seconds that the others have."""
    script = """
    trap "sleep 12; touch saved; exit 143" TERM
    [ $CUDA_VISIBLE_DEVICES = 5 ] && trap "exit 143" TERM
    touch begun-$$
    for i in $(seq 300); do sleep 0.1; done
    """
    process = start_for_gpus(["train", "-m", "model", *launched(training)], script, "3,5")
    appear(tmp_path, "begun-*")
    process.terminate()
    assert status_of(process) == 143
    assert (tmp_path / "saved").exists()
    assert "are ended" not in (tmp_path / "errors").read_text()


def test_a_signal_reaches_every_process_of_train(start_for_gpus, training, tmp_path):
    script = (
        "trap 'touch ended-$$; exit' TERM\ntouch begun-$$\nfor i in $(seq 300); do sleep 0.1; done"
    )
    process = start_for_gpus(["train", "-m", "model", *launched(training)], script)
    appear(tmp_path, "begun-*")
    process.terminate()
    appear(tmp_path, "ended-*")
    assert status_of(process) == 0


def test_processes_of_a_cluster_start_no_others(start, training, tmp_path):
    """They end when they read the dictionaries, which are missing."""
    (tmp_path / "words.json").unlink()
    workers = [f"localhost:{port}" for port in free_ports(2)]
    started = []
    for rank in range(2):
        cluster = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
        variables = {"CUDA_VISIBLE_DEVICES": "0,1", "TF_CONFIG": json.dumps(cluster)}
        first = f"{GPUS}; os.environ |= {variables!r}"
        files = (os.devnull, f"output-{rank}", f"errors-{rank}")
        started.append(start(tmp_path, [*training, "-m", "model"], files, first))
    assert [status_of(process) for process in started] == [2, 2]
    for rank in range(2):
        errors = (tmp_path / f"errors-{rank}").read_text()
        assert "words.json" in errors
        assert "with a process for each" not in errors


PROCESS = """
import os, pathlib, signal, socket, sys, time
sys.path.insert(0, {root!r})
from nmt.commands.launcher import follow_launcher

def end(*_):
    pathlib.Path(f"ended-{{os.getpid()}}").touch()
    sys.exit()

signal.signal(signal.SIGTERM, end)
follow_launcher()
with socket.socket(fileno=int(os.environ["NMT_HELD_PORT"])) as held:
    assert held.getsockname()[1]
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    part = pathlib.Path(f"part-{{os.getpid()}}")
    part.write_text(next(line for line in lines if line.startswith("Cpus_allowed_list")))
    part.rename(f"cores-{{os.getpid()}}")
    time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs signals and affinities of Linux")
def test_each_process_has_its_cores_and_none_outlives_the_first(start, training, tmp_path):
    """A script in place of Python writes its cores, and waits until `train` is killed."""
    script = tmp_path / "python"
    script.write_text(f"#!{sys.executable}\n{PROCESS.format(root=str(Path(__file__).parents[3]))}")
    script.chmod(0o755)
    words = ["train", "--processes", 2, "-m", "model", *launched(training)]
    process = start(tmp_path, words, first=f"sys.executable = {str(script)!r}")
    given = appear(tmp_path, "cores-*")
    cores = {path.read_text().split()[1] for path in given}
    assert len(cores) == min(2, len(os.sched_getaffinity(0)))
    process.kill()
    ended = appear(tmp_path, "ended-*")
    assert {path.name.split("-")[1] for path in ended} == {
        path.name.split("-")[1] for path in given
    }


def appear(folder, pattern):
    """Waits for two files of a pattern and returns them."""
    end = time.monotonic() + 300
    while len(found := list(folder.glob(pattern))) < 2:
        assert time.monotonic() < end
        time.sleep(0.05)
    return found
