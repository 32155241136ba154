"""Options: a file holds them, and wrong ones are named."""

import re
from pathlib import Path

import pytest

from nmt.config import CHANGEABLE, Config, make_config, read_options
from nmt.errors import UserError
from nmt.storage.files import read_json
from tests.nmt.required_options import REQUIRED

GIVEN = {**REQUIRED, "batch_size": 7, "learning_rate": 0.5, "tie_decoder_embeddings": True}


def test_saved_and_read_back(tmp_path):
    config = make_config(GIVEN)
    config.save(tmp_path / "config.json")
    assert make_config(read_json(tmp_path / "config.json")) == config
    assert [path.name for path in tmp_path.iterdir()] == ["config.json"]


def test_one_file_in_a_list_is_that_file(tmp_path):
    several = {
        "source_dataset": ("a", "b"),
        "target_dataset": ("c", "d"),
        "dataset_weights": (1.0, 2.5),
    }
    make_config({**REQUIRED, **several}).save(tmp_path / "config.json")
    read = read_json(tmp_path / "config.json")
    assert make_config(read) == Config(**{**REQUIRED, **several})
    assert make_config({**REQUIRED, "source_dataset": ["train.en"]}) == Config(**REQUIRED)


TRANSFORMER = {"model_type": "transformer", "embedding_size": 64, "state_size": 64}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {**TRANSFORMER, "embedding_size": 32},
            "is 32 and --state_size 64",
        ),
        (
            {**TRANSFORMER, "transformer_num_heads": 5},
            "of --transformer_num_heads (5)",
        ),
        (
            {**TRANSFORMER, "embedding_size": 15, "state_size": 15, "transformer_num_heads": 5},
            "--state_size is 15; position",
        ),
        (
            {**TRANSFORMER, "rnn_dropout_hidden": 0.1},
            "--rnn_dropout_hidden has no effect",
        ),
        (
            {**TRANSFORMER, "output_hidden_activation": "relu"},
            "no effect with --model_type ",
        ),
        ({**TRANSFORMER, "transformer_norm_position": "mid"}, "it must be one of pre, post"),
        (
            {"transformer_num_heads": 4},
            "no effect with --model_type rnn",
        ),
        (
            {"rnn_dec_deep_context": True},
            "no effect with --rnn_dec_depth 1",
        ),
        (
            {"rnn_dec_base_transition_depth": 1},
            "is 1; it must be from 2 to 1000",
        ),
        (
            {"layer_normalization_center": True},
            "--layer_normalization_center needs",
        ),
        ({"warmup_steps": 10}, "transformer or warmup-plateau-decay"),
        (
            {"learning_schedule": "transformer", "learning_rate": 0.1},
            "--learning_rate has no effect",
        ),
        (
            {"dataset_weights": (1, 2)},
            "values and --source_dataset 1 files",
        ),
        (
            {"target_prefixes": ("",), "target_dataset": ("a", "b")},
            "values and --target_dataset 2 files",
        ),
        (
            {"valid_target_prefixes": ("", "a")},
            "--valid_target_prefixes has 2",
        ),
        ({"batch_size": 0}, "above 0 and at most 100000"),
        ({"learning_rate": 10**400}, "size from 1e-30 to 2147483647"),
        ({"learning_rate": 1e-300}, "--learning_rate is 1e-300; a number"),
        (
            {"batch_size": 2**31 - 1},
            "--batch_size is 2147483647; ",
        ),
        (
            {"rnn_enc_depth": 10**6},
            "--rnn_enc_depth is 1000000; ",
        ),
        ({"finish_after": 10**30}, "size from 1e-30 to 2147483647"),
        ({"batch_size": 2.5}, "--batch_size is 2.5; "),
        ({"batch_size": True}, "is True; it must be of type int"),
        ({"learning_rate": "fast"}, "'fast'; it must be a finite number"),
        ({"learning_rate": float("nan")}, "--learning_rate is nan; "),
        (
            {"rnn_dropout_hidden": 1.0},
            "must be at least 0 and below 1",
        ),
        ({"source_vocab_sizes": 3}, "must be from 4 to 10000000"),
        ({"seed": 2**31}, "it must be from 0 to 2147483647"),
        ({"dictionaries": ["one"]}, "('one',); it must be two file names"),
        ({"tie_decoder_embeddings": 1}, "is 1; it must be of type bool"),
        ({"output_hidden_activation": "elu"}, "one of tanh, relu, prelu, linear"),
        ({"source_dataset": None}, "--source_dataset is missing"),
        ({"layer_normalization_type": "batchnorm"}, "python patches/apply.py apply "),
        ({"source_dataset": []}, "--source_dataset is (); "),
        (
            {"source_dataset": ["a", 3]},
            "it must be a string, or several",
        ),
        (
            {"dataset_weights": [1, 0]},
            "--dataset_weights is (1, 0); ",
        ),
        (
            {"dataset_weights": [1, 2e9]},
            "above 0 and at most 1000",
        ),
        ({"dataset_weights": ["a"]}, "('a',); it must be finite numbers"),
        ({"bacth_size": 3}, "did you mean batch_size?"),
        ({"xyz": 3}, "unknown option xyz; "),
    ],
)
def test_wrong_options_are_named(options, said):
    with pytest.raises(UserError) as caught:
        make_config({**REQUIRED, **options})
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_options_without_effect_may_change_in_a_resumed_training():
    rnn = make_config(REQUIRED).fixed_options()
    transformer = make_config({**REQUIRED, **TRANSFORMER}).fixed_options()
    assert {
        "state_size",
        "batch_size",
        "layer_normalization_type",
    } <= rnn.keys() & transformer.keys()
    assert not [name for name in rnn if name.startswith("transformer_")]
    assert not [name for name in transformer if name.startswith("rnn_")]
    assert not {"finish_after", "source_dataset"} & rnn.keys()


LEARNING_RATE = ["learning_schedule", "learning_rate", "warmup_steps", "plateau_steps"]
LEARNING_RATE += ["learning_rate_reduce_factor", "learning_rate_reduce_num_not_improved"]


def test_these_options_may_change_in_a_resumed_training():
    """The documentation names them too."""
    text = (Path(__file__).parents[2] / "docs" / "nmt.md").read_text()
    text = text[text.index("- **Resuming with other options**") : text.index("- **Fine-tuning**")]
    assert {*CHANGEABLE} == {
        *LEARNING_RATE,
        *re.findall(r"`--(\w+)`", text.partition("may change")[0]),
    }
    config = make_config({**REQUIRED, "learning_schedule": "warmup-plateau-decay"})
    assert not {*CHANGEABLE} & config.fixed_options().keys()


@pytest.mark.parametrize("model_type", ["rnn", "transformer"])
def test_these_options_decide_the_weights(model_type):
    common = {"model_type", "embedding_size", "state_size"}
    common |= {"layer_normalization_type", "layer_normalization_center"}
    common |= {"tie_decoder_embeddings", "tie_encoder_decoder_embeddings"}
    depths = {
        "enc_depth",
        "enc_transition_depth",
        "dec_depth",
        "dec_base_transition_depth",
        "dec_high_transition_depth",
    }
    own = {
        "rnn": {
            "output_hidden_activation",
            "rnn_dec_deep_context",
            *(f"rnn_{each}" for each in depths),
        },
        "transformer": {
            f"transformer_{each}"
            for each in (
                *(
                    "enc_depth",
                    "dec_depth",
                    "ffn_hidden_size",
                    "num_heads",
                    "norm_position",
                    "activation",
                ),
                *("attention_bias", "output_bias", "positions", "padding", "norm_epsilon"),
            )
        },
    }
    assert (
        make_config({**REQUIRED, "model_type": model_type}).architecture.keys()
        == common | own[model_type]
    )


def test_batches_of_tokens_have_the_loss_of_a_token_unless_another_is_given():
    sentence = "cross-entropy"
    token = "per-token-cross-entropy"
    losses = {
        sentence: [
            {},
            {"token_batch_size": None},
            {"token_batch_size": 4096, "loss_function": sentence},
        ],
        token: [{"token_batch_size": 4096}, {"loss_function": token}],
    }
    for loss, given in losses.items():
        assert {make_config({**REQUIRED, **options}).loss_function for options in given} == {loss}


def test_all_wrong_options_are_named_at_once():
    with pytest.raises(UserError) as caught:
        make_config({"batch_size": 0, "maxlen": 0})
    assert str(caught.value).count("\n") == 6


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("options.json", None, "cannot be read"),
        ("options.json", b"{", "is not JSON"),
        ("options.json", b"[]", "must hold a JSON object"),
        ("options.yml", None, "cannot be read"),
        ("options.yml", b"a: [", "is not YAML: .* line 1"),
        ("options.yml", b"- a", "must hold options"),
        ("options.yml", b"", "must hold options"),
        ("options.yml", b"\xff", "is not YAML"),
    ],
)
def test_a_bad_file_is_refused(tmp_path, name, content, said):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=said):
        read_options(tmp_path / name)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("seed: 08", 8),
        ("clip_c: 1", 1.0),
        ("deterministic: No", False),
        ("valid_freq: ~", None),
        ("valid_tokenizer: none", "none"),
        ("target_prefixes: ['', <2de>, no]", ["", "<2de>", "no"]),
        ("dictionaries: [1, 2]", ["1", "2"]),
        ("batch_size: many", "many"),
        ("batch_size: {a: 1}", {"a": "1"}),
        ("deterministic: 2", "2"),
        ("other: 1", "1"),
    ],
)
def test_values_in_yaml_have_the_type_of_the_option(tmp_path, line, value):
    (tmp_path / "options.yaml").write_text(line)
    found = read_options(tmp_path / "options.yaml")[line.partition(":")[0]]
    assert found == value
    assert type(found) is type(value)
