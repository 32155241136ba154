"""Options on the command line: equal to those of a file, and described in the help."""

import argparse
import dataclasses
import json

import pytest

from nmt.commands.options import add_options
from nmt.config import Config, make_config
from nmt.storage.files import read_json
from tests.nmt.required_options import REQUIRED


def parse(*words):
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_options(parser)
    return vars(parser.parse_args(words))


def test_command_line_and_file_give_the_same(tmp_path):
    words = [
        *("--source_dataset", "train.en", "--target_dataset", "train.de", "--dictionaries", "en.model", "de.model"),
        *("--valid_source_dataset", "dev.en", "--valid_target_dataset", "dev.de"),
        *("--batch_size", "7", "--learning_rate", "0.5", "--tie_decoder_embeddings"),
    ]
    given = {**REQUIRED, "batch_size": 7, "learning_rate": 0.5, "tie_decoder_embeddings": True}
    (tmp_path / "given.json").write_text(json.dumps(given))
    from_line, from_file = make_config(parse(*words)), make_config(read_json(tmp_path / "given.json"))
    assert from_line == from_file == Config(**given)


def test_every_option_is_on_the_command_line_with_help_and_both_spellings():
    parser = argparse.ArgumentParser()
    add_options(parser)
    text = parser.format_help()
    for field in dataclasses.fields(Config):
        assert f"--{field.name}" in text
        assert field.metadata["help"]
    assert "--layer_normalisation_type" in text


def test_options_not_given_are_absent():
    assert parse() == {}


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("clip_c", "(above 0; default: 1.0)"),
        ("label_smoothing", "(at least 0 and below 1; default: 0.0)"),
        ("token_batch_size", "(above 0 and at most 10000000; optional)"),
        ("source_dataset", "(required)"),
        ("valid_metric", "(default: bleu)"),
    ],
)
def test_the_help_says_which_values_are_allowed(option, said):
    parser = argparse.ArgumentParser()
    add_options(parser, [option])
    assert said in " ".join(parser.format_help().split())


def test_an_option_that_a_command_does_not_require_is_optional():
    parser = argparse.ArgumentParser()
    add_options(parser, ["source_dataset", "valid_source_dataset"], optional=["valid_source_dataset"])
    text = " ".join(parser.format_help().split())
    assert text.count("(required)") == text.count("(optional)") == 1
