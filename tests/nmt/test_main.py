"""The commands, from text to translation, and their messages about mistakes."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import rmsnorm_tf
from nmt.commands import average
from tests.nmt.conftest import LINES
from tests.nmt.outcomes import refused


@pytest.mark.slow
def test_from_text_to_translations(run, train, tmp_path, write_lines):
    status, _, said = train(model_type="rnn")
    assert status == 0, said
    assert "6 of 6 sentence pairs are used" in said
    assert "6 of the 6 validation pairs" in said
    assert "stopped after update 2" in said
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert {
        "config.json",
        "versions.json",
        "source.model",
        "target.model",
        "best.npz",
        "last.npz",
    } <= names
    assert "tensorflow" in json.loads((tmp_path / "model" / "versions.json").read_text())

    text = write_lines("text", ["a b", "", *LINES])
    status, output, _ = run("translate", "-m", "model", "-i", text, "-k", 2, "-b", 3)
    lines = output.split("\n")
    assert (status, len(lines), lines[1], lines[-1]) == (0, 9, "", "")

    status, output, _ = run("translate", "-m", "model", "-i", text, "-k", 2, "--n_best", "-n")
    beams = [line.split(" ||| ") for line in output.splitlines()]
    assert status == 0
    assert [beam[0] for beam in beams] == sorted(beam[0] for beam in beams)
    assert [beam[1:] for beam in beams if beam[0] == "1"] == [["", "0.000000"]]
    assert {beam[0] for beam in beams} == {str(number) for number in range(8)}

    status, output, _ = run("score", "-m", "model", "-s", text, "-t", text)
    assert (status, output.count("\n")) == (0, 8)

    assert run("export", "-m", "model", "--to", "saved")[0] == 0
    assert "nmt: saved exists already; " in refused(run("export", "-m", "model", "--to", "saved"))


def test_both_vocabularies_are_made_or_none(run, write_lines, tmp_path):
    write_lines("good", ["a b c d e f g h"])
    write_lines("bad", ["a"])
    texts = ("--source_dataset", "good", "--target_dataset")
    assert run("vocab", *texts, "good", "--size", 11, "--to", "vocab")[0] == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "vocab").iterdir()}
    assert before.keys() == {"source.model", "target.model"}
    assert "a vocabulary of 12 units from bad" in refused(
        run("vocab", *texts, "bad", "--size", 12, "--to", "vocab")
    )
    assert {path.name: path.read_bytes() for path in (tmp_path / "vocab").iterdir()} == before


def test_output_goes_into_a_pipe_and_through_a_link(run, trained, tmp_path):
    (tmp_path / "text").write_text("a b\n")
    assert run("translate", "-m", "model", "-i", "text", "-o", "plain")[0] == 0
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    read = subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE)
    assert run("translate", "-m", "model", "-i", "text", "-o", "pipe")[0] == 0
    expected = (tmp_path / "plain").read_bytes()
    assert read.communicate(timeout=60)[0] == expected
    assert (tmp_path / "pipe").is_fifo()
    assert run("translate", "-m", "model", "-i", "text", "-o", "link")[0] == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == expected


def test_closed_standard_streams_are_refused(run, trained, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert "give --input FILE" in refused(run("translate", "-m", "model"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("translate -m nowhere", "nmt: nowhere holds no model"),
        ("score -m nowhere -s a -t b", "nmt: nowhere holds no model"),
        ("export -m nowhere --to there", "nmt: nowhere holds no model"),
        ("vocab --source_dataset a --target_dataset b --to v", "nmt: the text a does not exist"),
        (
            "translate -m nowhere -n nan",
            "nmt: --normalization_alpha is nan; ",
        ),
        (
            "vocab --source_dataset a --target_dataset b --to words.json",
            "nmt: words.json: File exists",
        ),
        (
            "vocab --source_dataset a --to v",
            "are required: --target_dataset",
        ),
        (
            "vocab --source_dataset a --target_dataset b --to v --size 100000000000",
            "above 0 and at most 10000000",
        ),
        (
            f"vocab --source_dataset a --target_dataset b --to v --size {'9' * 5000}",
            "is not a whole number above 0 and",
        ),
        ("train -m model --config none.json", "nmt: none.json cannot be read"),
        (
            "train -m model --batch_size many",
            "train: argument --batch_size: ",
        ),
        ("translate -m model -k 0", "nmt: --beam_size is 0; "),
        ("translate -m model --min_length -1", "--min_length is -1; "),
        ("translate -m a --no_repeat_ngram 0", "is 0; it must be from 1 to 100"),
        (
            "translate -m model --min_length 9 --translation_maxlen 8",
            "is 9 and --translation_maxlen 8; ",
        ),
        (
            "translate -m model -k 100000000000",
            "nmt: --beam_size is 100000000000; ",
        ),
        (
            "translate -m model -k many",
            "-k/--beam_size: invalid int value",
        ),
        (
            "export -m model --to x -n 1e300",
            "is 1e+300; it must be from 0 to 10",
        ),
        ("score -m model -s a -t b -b 0", "it must be from 1 to 100000"),
        (
            "translate -m nowhere --translation_strategy sampling -k 3",
            "nmt: --beam_size has no effect",
        ),
        (
            "translate -m nowhere --seed 3",
            "nmt: --seed has no effect",
        ),
        (
            "translate --modle nowhere",
            "are required: -m/--model",
        ),
        (
            "translate -m nowhere --beam_sise 3",
            "did you mean --beam_size?",
        ),
        ("corpus other --to there", "name: invalid choice: 'other'"),
        ("", "are required: COMMAND"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(run, dictionary, tmp_path, words, said):
    status, output, error = run(*words.split())
    assert (status, output) == (2, "")
    assert said in error
    assert error.count("\n") == 1
    assert not list(tmp_path.rglob("*.npz"))


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ("last.npz", "nmt: model has no best.npz"),
        (None, "nmt: there is no checkpoint"),
    ],
)
def test_a_model_without_its_best_checkpoint_is_refused(run, trained, tmp_path, left, said):
    for name in {"best.npz", "last.npz"} - {left}:
        (tmp_path / "model" / name).unlink()
    assert refused(run("translate", "-m", "model")).startswith(said)


def test_the_version_is_printed(run):
    status, said, _ = run("--version")
    version = importlib.metadata.version("tensorflow")
    assert (status, said) == (0, f"rmsnorm-tf {rmsnorm_tf.__version__}, tensorflow {version}\n")


@pytest.mark.parametrize(
    ("source", "output", "said"),
    [
        ("train.en", ".", "nmt: . is a directory"),
        ("train.en", "no/where", "nmt: no/where cannot be written: "),
        ("none", "out", "nmt: none does not exist"),
    ],
)
def test_a_bad_path_leaves_no_output(run, trained, tmp_path, source, output, said):
    before = sorted(tmp_path.rglob("*"))
    assert said in refused(run("translate", "-m", "model", "-i", source, "-o", output))
    assert sorted(tmp_path.rglob("*")) == before


def as_graph(function):
    return lambda: tf.function(function, autograph=False)()


@pytest.mark.parametrize(
    ("fail", "said"),
    [
        (lambda: tf.zeros([2**40]), "memory ran out: "),
        (as_graph(lambda: tf.random.stateless_normal([2**40], [1, 2])), "memory ran out: "),
        (lambda: np.empty(2**50), "memory ran out: "),
        (lambda: tf.io.read_file("nowhere"), "NotFoundError: nowhere; "),
        (
            as_graph(lambda: tf.gather([1, 2], tf.random.uniform([], 7, 8, tf.int32))),
            "InvalidArgumentError: indices = 7 ",
        ),
    ],
)
def test_errors_of_tensorflow_are_one_sentence(run, monkeypatch, fail, said):
    monkeypatch.setattr(average, "run", lambda arguments: fail())
    status, _, errors = run("average", "-m", "model", "--to", "average.npz", "--last", 2)
    assert (status, errors.count("\n")) == (2, 1)
    assert errors.startswith(f"nmt: {said}")
    assert not re.search(r"\{\{|\[Op|Hint|\t", errors)


def test_no_progress_bar_between_the_lines_of_a_terminal(train, run, write_lines, monkeypatch):
    assert train()[0] == 0
    text = write_lines("text", LINES)
    for words in (["translate", "-i", text], ["score", "-s", text, "-t", text]):
        assert "\r" in run(*words, "-m", "model")[2]  # the bar
        with monkeypatch.context() as terminal:
            terminal.setattr(type(sys.stdout), "isatty", lambda self: True)
            assert "\r" not in run(*words, "-m", "model")[2]
