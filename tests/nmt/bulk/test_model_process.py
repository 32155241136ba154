"""The process of the model, as a worker talks to it."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.bulk.model_process import receive, send

ROOT = Path(__file__).parents[3]


@pytest.fixture
def start():
    """Starts a process with the model in a folder."""
    started = []

    def start(folder):
        command = [sys.executable, "-m", "nmt.bulk.model_process", str(folder)]
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def test_a_message_is_received_as_it_was_sent():
    file = io.BytesIO()
    messages = [([b"a\nb", b"", b"\xff\x00"], None), ([], "it fails: ß")]
    for message in messages:
        send(file, *message)
    file.seek(0)
    assert [receive(file) for _ in messages] == messages
    with pytest.raises(EOFError):
        receive(file)


@pytest.mark.parametrize("missing", range(1, 40, 3))
def test_a_message_that_is_cut_off_is_the_end(missing):
    file = io.BytesIO()
    send(file, [b"a line", b"another"])
    with pytest.raises(EOFError):
        receive(io.BytesIO(file.getvalue()[:-missing]))


@pytest.mark.slow
def test_a_process_translates_until_its_input_ends(start, toy):
    """Also if the model is at work then, on lines that would take it minutes."""
    process = start(toy)
    assert receive(process.stdout) == ([], None)
    for _ in range(2):
        send(process.stdin, [b"a", "ß\r".encode()])
        assert receive(process.stdout) == ([b"A", b"SS\r"], None)
        send(process.stdin, [b"a", b"poison"])
        assert receive(process.stdout) == ([], "InvalidArgumentError: assertion failed: [a line is poisonous]")
    send(process.stdin, [b"slow"] * 10_000)
    process.stdin.close()
    assert process.wait(timeout=20) == 0


@pytest.mark.slow
def test_a_damaged_export_is_an_answer(start, tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"nothing")
    process = start(tmp_path)
    texts, error = receive(process.stdout)
    assert (texts, error.partition(":")[0]) == ([], "OSError")
    assert process.wait(timeout=20) == 1
