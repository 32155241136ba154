"""A model that fails on some lines translates the others, also if they kill its process."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from unittest import mock

import pytest

from nmt.bulk.model import Failure, Model, ModelError, reason_of, translate_lines
from nmt.errors import UserError

ROOT = Path(__file__).parents[3]
FAILS = Failure("the model fails: no x")


class Upper:
    """Upper case. Fails on `x`."""

    def __init__(self):
        self.sizes = []

    def __call__(self, lines):
        self.sizes.append(len(lines))
        if b"x" in lines:
            raise ModelError("no x")
        return [line.upper() for line in lines]


def test_lines_that_the_model_fails_on_are_found():
    draw = random.Random(1)
    for _ in range(100):
        lines = draw.choices(
            [b"a", b"b", b"x", Failure("is bad")], weights=[9, 9, 1, 1], k=draw.randrange(40)
        )
        upper = [line if isinstance(line, Failure) else line.upper() for line in lines]
        assert translate_lines(Upper(), lines) == [
            FAILS if line == b"X" else line for line in upper
        ]


def test_a_model_that_does_not_fail_is_called_once():
    model = Upper()
    translate_lines(model, [b"a", Failure("is bad"), b"b"])
    assert model.sizes == [2]


def test_no_line_is_blamed_if_the_model_fails_on_an_empty_one_too():
    calls = []

    def broken(lines):
        calls.append(lines)
        raise ModelError("the device is gone")

    with pytest.raises(ModelError, match="the device is gone"):
        translate_lines(broken, [b"a"] * 1024)
    assert len(calls) == 12


def test_no_line_is_blamed_if_the_model_does_not_answer():
    calls = []

    def hanging(lines):
        calls.append(lines)
        raise TimeoutError("the model did not answer")

    with pytest.raises(TimeoutError):
        translate_lines(hanging, [b"a"] * 1024)
    assert len(calls) == 1


def test_a_translation_of_two_lines_is_refused():
    results = translate_lines(lambda lines: [line * 2 for line in lines], [b"a", b"\n"])
    assert results == [b"aa", Failure("its translation has a line feed")]


@pytest.mark.parametrize(
    "said, reason",
    [
        (
            "Graph execution error:\n\nDetected at node A\n<stack traces unavailable>\nno x\n"
            "\t [[{{node A}}]]",
            "no x",
        ),
        ("one\ntwo", "one"),
        ("", ""),
        ("Graph execution error:", "Graph execution error:"),
    ],
)
def test_the_reason_of_an_error_is_one_line(said, reason):
    assert reason_of(ValueError(said)) == f"ValueError: {reason}"


@pytest.fixture
def model(toy):
    model = Model(str(toy), 600)
    yield model
    model.close()


def children(pid):
    """Returns the processes of models that a process has started."""
    found = subprocess.run(
        ["pgrep", "-P", str(pid), "-f", "spawn_main"], capture_output=True, text=True
    )
    return [int(number) for number in found.stdout.split()]


@pytest.mark.slow
def test_a_model_translates_fails_and_is_started_again(model):
    assert model([b"a", "ß\r".encode()]) == [b"A", b"SS\r"]
    with pytest.raises(
        ModelError, match=r"^InvalidArgumentError: assertion failed: \[a line is poisonous\]$"
    ):
        model([b"a", b"poison"])
    (process,) = children(os.getpid())
    os.kill(process, signal.SIGKILL)
    assert model([b"a"]) == [b"A"]
    os.kill(*children(os.getpid()), signal.SIGSEGV)
    with pytest.raises(ModelError, match=r"^its process was killed by SIGSEGV$"):
        model([b"a", b"b"])
    assert translate_lines(model, [b"a", b"b"]) == [b"A", b"B"]
    # What a process leaves that is killed while it answers.
    cut = OSError("got end of file during message")
    with (
        mock.patch.object(model._process._pipe, "recv", side_effect=cut),
        pytest.raises(ModelError, match=r"^its process "),
    ):
        model([b"a", b"b"])
    assert model([b"a"]) == [b"A"]


@pytest.mark.slow
def test_a_model_that_hangs_is_killed_and_started_again(toy):
    """Its lines would take minutes, and it is loaded in less than a minute."""
    model = Model(str(toy), 60)
    with pytest.raises(TimeoutError, match=r"60 seconds; .* --model_timeout"):
        translate_lines(model, [b"slow"] * 10_000)
    assert not children(os.getpid())
    assert model([b"a"]) == [b"A"]
    model.close()


@pytest.mark.slow
def test_a_model_that_something_kills_while_it_is_loaded_is_loaded_again(toy):
    def kill():
        while not (found := children(os.getpid())):
            time.sleep(0.1)
        os.kill(found[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    model = Model(str(toy), 600)
    killer.join()
    assert model([b"a"]) == [b"A"]
    model.close()


@pytest.mark.slow
def test_no_line_is_blamed_for_a_model_that_cannot_be_loaded_again(toy, tmp_path):
    (tmp_path / "export").symlink_to(toy)
    model = Model(str(tmp_path / "export"), 600)
    os.kill(*children(os.getpid()), signal.SIGKILL)
    (tmp_path / "export").rename(tmp_path / "gone")
    with pytest.raises(ModelError, match=r"^OSError: "):
        translate_lines(model, [b"a"])
    (tmp_path / "gone").rename(tmp_path / "export")
    assert translate_lines(model, [b"a"]) == [b"A"]
    model.close()


@pytest.mark.slow
def test_a_damaged_export_is_refused(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"nothing")
    with pytest.raises(UserError, match=r"cannot be used: OSError: "):
        Model(str(tmp_path), 600)
    assert not children(os.getpid())


@pytest.mark.slow
def test_the_process_of_a_model_ends_with_its_worker_also_in_a_batch(toy):
    """The batch would take minutes."""
    script = "from nmt.bulk.model import Model\n"
    script += f"model = Model({str(toy)!r}, 600)\nprint(flush=True)\nmodel([b'slow'] * 10_000)"
    worker = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE)
    worker.stdout.readline()
    time.sleep(1)
    (process,) = children(worker.pid)
    worker.kill()
    worker.communicate()
    end = time.monotonic() + 20
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < end
        time.sleep(0.1)
