"""Presets: a name stands for options, which `config.json` lists, and options that are given too
win."""

import json
from pathlib import Path

import pytest

import nmt
from nmt.config import Config, make_config
from nmt.errors import UserError
from tests.nmt.required_options import REQUIRED

PRESETS = {
    path.stem: json.loads(path.read_text())
    for path in Path(nmt.__file__).parent.glob("presets/*.json")
}


def options(config, *names):
    return tuple(getattr(config, name) for name in names)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_stands_for_its_options(name):
    config = make_config({**REQUIRED, "preset": name})
    assert config == make_config({**REQUIRED, **PRESETS[name]})
    assert config != Config(**REQUIRED)
    assert all(getattr(config, option) == value for option, value in PRESETS[name].items())


def test_transformer_base_has_the_sizes_of_the_paper():
    config = make_config({**REQUIRED, "preset": "transformer-base"})
    depths = ("transformer_enc_depth", "transformer_dec_depth", "transformer_num_heads")
    sizes = ("embedding_size", "state_size", "transformer_ffn_hidden_size", "token_batch_size")
    assert options(config, *depths, *sizes) == (6, 6, 8, 512, 512, 2048, 25_000)
    names = ("label_smoothing", "warmup_steps", "adam_beta2", "adam_epsilon")
    assert options(config, *names) == (0.1, 4000, 0.98, 1e-9)


@pytest.mark.parametrize(
    "given",
    [
        {"state_size": 256},
        {"embedding_size": 256},
        {"batch_size": 80, "token_batch_size": None},
        {"batch_size": 80},
        {"learning_schedule": "constant", "learning_rate": 0.001},
        {"label_smoothing": 0.0, "layer_normalization_type": "none"},
        {"model_type": "rnn", "rnn_enc_depth": 2},
    ],
)
def test_options_beside_a_preset_win(given):
    """And those of the preset that have no effect with them are left out."""
    config = make_config({**REQUIRED, "preset": "transformer-base", **given})
    assert all(getattr(config, name) == value for name, value in given.items())
    if "batch_size" in given:
        assert options(config, "token_batch_size", "loss_function") == (None, "cross-entropy")
    if config.model_type == "transformer":
        assert (
            config.embedding_size
            == config.state_size
            == given.get("state_size", given.get("embedding_size", 512))
        )


def test_an_unknown_preset_is_refused_with_the_known_ones(train):
    said = "--preset is {!r}; it must be one of rnnsearch, transformer-base, transformer-tiny"
    status, _, errors = train("--preset", "transformer-big")
    assert (status, errors.strip().endswith(said.format("transformer-big"))) == (2, True), errors
    with pytest.raises(UserError) as caught:
        make_config({**REQUIRED, "preset": ["rnnsearch"]})
    assert str(caught.value) == said.format(["rnnsearch"])
    with pytest.raises(UserError):
        make_config({**REQUIRED, "preset": "../presets/rnnsearch"})  # no file of another place


def test_the_command_writes_the_options_of_a_preset(train, tmp_path):
    """And the options beside it, on the command line and in a file."""
    (tmp_path / "options.json").write_text(
        json.dumps({"preset": "rnnsearch", "label_smoothing": 0.3, "maxlen": 9})
    )
    assert train("--config", "options.json", "--preset", "transformer-tiny", "--maxlen", 8)[0] == 0
    saved = json.loads((tmp_path / "model" / "config.json").read_text())
    assert "preset" not in saved
    assert (saved["learning_rate"], saved["adam_beta2"]) == (0.003, 0.98)
    assert (saved["label_smoothing"], saved["maxlen"], saved["embedding_size"]) == (0.3, 8, 4)


def test_a_transformer_needs_no_sizes():
    """Its defaults train: equal sizes, a multiple of the heads, and a norm.

    One size gives the other.
    """
    transformer = {**REQUIRED, "model_type": "transformer"}
    names = ("embedding_size", "state_size", "layer_normalization_type")
    assert options(make_config(transformer), *names) == (512, 512, "layernorm")
    for size in ("embedding_size", "state_size"):
        assert options(make_config({**transformer, size: 64}), *names) == (64, 64, "layernorm")
    assert options(make_config(REQUIRED), *names) == (512, 1000, "none")
