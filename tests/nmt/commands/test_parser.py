"""The command line: read in a moment, equal to options of a file, and described in the help."""

import argparse
import dataclasses
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from nmt.commands.options import average, train
from nmt.config import Config, make_config, read_options
from tests.nmt.required_options import REQUIRED

ROOT = Path(__file__).parents[3]


def parse(*words):
    parser = argparse.ArgumentParser(exit_on_error=False)
    train(parser)
    given = vars(parser.parse_args(["-m", "model", *words]))
    return {
        name: value for name, value in given.items() if name not in ("model", "config", "processes")
    }


def help_of(command):
    """Returns the help of each option by the first of its long names."""
    parser = argparse.ArgumentParser()
    command(parser)
    blocks = re.split(r"\n  (?=-)", parser.format_help())[1:]
    named = [
        (re.findall(r"--\w+", block.split("  ")[0].split("\n")[0])[0], " ".join(block.split()))
        for block in blocks
    ]
    return dict(named)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--help", ""),
        ("--version", ""),
        ("train --help", ""),
        ("translate --modle model", "--model"),
        ("train -m a --no 3", "--no"),
        ("export -m a --to b --format ctranslate2", "ctranslate2 is missing"),
        ("serve models", "uvicorn is missing"),
        ("translate -m a -o b.zst", "backports is missing"),
        ("train -m a --source_dataset b c*.zst --maxlen 9", "backports is missing"),
    ],
)
def test_a_command_line_is_read_before_tensorflow_is_loaded(words, said):
    """In an environment without TensorFlow, Keras, NumPy and extras, and in less than a second."""
    absent = ["tensorflow", "keras", "numpy", "rmsnorm_tf", "ctranslate2", "uvicorn", "backports"]
    program = (
        f"import sys; sys.modules |= dict.fromkeys({absent}); sys.argv[1:] = {words.split()}; "
        "from nmt.__main__ import main; main()"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, env=os.environ
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (result.returncode, "Traceback" in result.stderr, said in result.stderr) == (
        2 if said else 0,
        False,
        True,
    )
    assert (
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1
    )  # 0.2 on a quiet machine


def test_command_line_and_files_give_the_same(tmp_path):
    words = [
        *(
            "--source_dataset",
            "train.en",
            "--target_dataset",
            "train.de",
            "--dictionaries",
            "en.model",
            "de.model",
        ),
        *(
            "--valid_source_dataset",
            "dev.en",
            "--valid_target_dataset",
            "dev.de",
            "--no-deterministic",
        ),
        *(
            "--batch_size",
            "7",
            "--learning_rate",
            "1e-4",
            "--tie_decoder_embeddings",
            "--dataset_weights",
            "2",
        ),
    ]
    given = {
        **REQUIRED,
        "batch_size": 7,
        "learning_rate": 1e-4,
        "tie_decoder_embeddings": True,
        "dataset_weights": [2.0],
    }
    given |= {"deterministic": False, "valid_freq": None}
    (tmp_path / "given.json").write_text(json.dumps(given))
    (tmp_path / "given.yaml").write_text(
        "# comments and anchors are YAML's own\n"
        "source_dataset: train.en\ntarget_dataset: [train.de]\n"
        "dictionaries:\n- en.model\n- de.model\n"
        "valid_source_dataset: dev.en\nvalid_target_dataset: 'dev.de'\n"
        "batch_size: 7\nlearning_rate: 1e-4\n"
        "tie_decoder_embeddings: yes\ndeterministic: no\ndataset_weights: [2]\nvalid_freq: null\n"
    )
    files = [make_config(read_options(tmp_path / name)) for name in ("given.json", "given.yaml")]
    assert (
        make_config(parse(*words))
        == files[0]
        == files[1]
        == Config(**{**given, "dataset_weights": (2.0,)})
    )


def test_every_option_is_on_the_command_line_with_help_and_both_spellings():
    parser = argparse.ArgumentParser()
    train(parser)
    known = {option for action in parser._actions for option in action.option_strings}
    for field in dataclasses.fields(Config):
        assert f"--{field.name}" in known and field.metadata["help"]
        assert f"--{field.name.replace('normalization', 'normalisation')}" in known


def test_options_not_given_are_absent():
    assert parse() == {}


def test_models_may_be_given_one_by_one():
    parser = argparse.ArgumentParser()
    average(parser)
    found = parser.parse_args(["-m", "one", "two", "-m", "three", "--best", "1", "--to", "to"])
    assert found.model == [Path("one"), Path("two"), Path("three")]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("clip_c", "(0 or more; default: 1.0)"),
        ("label_smoothing", "(at least 0 and below 1; default: 0.0)"),
        ("token_batch_size", "(above 0 and at most 10000000; optional)"),
        ("source_dataset", "(required)"),
        ("valid_metric", "(default: bleu)"),
    ],
)
def test_the_help_says_which_values_are_allowed(option, said):
    assert said in help_of(train)[f"--{option}"]
