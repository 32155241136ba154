"""`import-nematus`: which checkpoints, options and dictionaries it reads."""

import itertools
import json
import shutil

import numpy as np
import pytest

from nmt.decoding.options import DecodingOptions
from nmt.errors import UserError
from nmt.nematus_models.importing import read_checkpoint_config
from nmt.normalization import KINDS
from nmt.system import load_system
from tests.nmt.nematus_files import (
    DATA,
    read_arrays,
    read_options,
    run,
    write_checkpoint,
    write_options,
)
from tests.nmt.outcomes import best
from tests.parameters import slow

DICTIONARIES = tuple(DATA / f"tiny.vocab.{side}.json" for side in ("en", "de"))


def test_option_names_of_all_versions_are_equivalent(tmp_path):
    old = {
        "dim_word": 8,
        "dim": 16,
        "n_words_src": 50,
        "n_words": 50,
        "lrate": 0.01,
        "layer_normalisation": True,
    }
    old_names = (
        "embedding_size",
        "state_size",
        "source_vocab_sizes",
        "target_vocab_size",
        "learning_rate",
    )
    new = {
        "rnn_layer_normalization": True,
        "layer_normalization_type": "layernorm",
        "rnn_enc_depth": 1,
    }
    configs = []
    for name, left_out, options in [
        ("v0.3", (), {"use_layer_norm": True}),
        ("before", (*old_names, "use_layer_norm"), old),
        ("later", ("use_layer_norm", "enc_depth"), new),
    ]:
        path = write_options(
            tmp_path / name, *left_out, dictionaries=list(map(str, DICTIONARIES)), **options
        )
        configs.append(read_checkpoint_config(path))
    assert configs[0] == configs[1] == configs[2]
    assert configs[0].layer_normalization_type == "layernorm"
    assert (configs[0].embedding_size, configs[0].state_size, configs[0].source_vocab_sizes) == (
        8,
        16,
        50,
    )


@pytest.mark.parametrize(
    ("options", "name", "ours"),
    [
        ({"token_batch_size": 0}, "token_batch_size", None),
        ({"token_batch_size": 4096}, "token_batch_size", 4096),
        # Versions before the option, and minimum risk training, average over sentences.
        ({"loss_function": None}, "loss_function", "cross-entropy"),
        ({"loss_function": "MRT"}, "loss_function", "cross-entropy"),
        ({"loss_function": "cross-entropy"}, "loss_function", "cross-entropy"),
        (
            {"loss_function": "per-token-cross-entropy", "token_batch_size": 4096},
            "loss_function",
            "per-token-cross-entropy",
        ),
        pytest.param(
            {"rnn_layer_normalization": True, "layer_normalization_type": "rmsnorm_fast"},
            "layer_normalization_type",
            "rmsnorm",
            marks=pytest.mark.skipif("rmsnorm" not in KINDS, reason="needs the patches"),
        ),
    ],
)
def test_options_become_ours(tmp_path, options, name, ours):
    path = write_options(tmp_path / "options.json", **options)
    assert getattr(read_checkpoint_config(path, DICTIONARIES), name) == ours


def test_dropout_rates_need_the_switch(tmp_path):
    off = read_checkpoint_config(DATA / "tiny_none.json")
    on = read_checkpoint_config(write_options(tmp_path / "on", use_dropout=True), DICTIONARIES)
    later = {"rnn_use_dropout": True, "rnn_dropout_hidden": 0.1, "rnn_dropout_embedding": 0.2}
    master = read_checkpoint_config(
        write_options(tmp_path / "later", "dropout_hidden", "dropout_embedding", **later),
        DICTIONARIES,
    )
    rates = [
        (config.rnn_dropout_embedding, config.rnn_dropout_hidden) for config in (off, on, master)
    ]
    assert rates == [(0.0, 0.0), (0.2, 0.2), (0.2, 0.1)]


def test_options_are_read_from_the_file_of_the_checkpoint_or_of_the_model(tmp_path, tiny):
    """Nematus v0.3 writes only MODEL.json, later versions also MODEL-N.json."""
    checkpoint = tiny(name="model-10")
    (tmp_path / "model-10.json").rename(tmp_path / "model.json")
    run("import-nematus", checkpoint, "--to", tmp_path / "imported")
    assert (tmp_path / "imported" / "nematus.json").read_text() == (
        tmp_path / "model.json"
    ).read_text()


def test_given_dictionaries_are_used_and_copied(tmp_path, tiny):
    given = [tmp_path / f"{side}.json" for side in ("a", "b")]
    for path, side in zip(given, ("en", "de"), strict=True):
        shutil.copy(DATA / f"tiny.vocab.{side}.json", path)
    run("import-nematus", tiny(), "--to", tmp_path / "imported", "--dictionaries", *given)
    assert (tmp_path / "imported" / "target.json").read_text() == given[1].read_text()


@pytest.mark.parametrize("size", [-1, *slow(60)])
def test_a_vocabulary_may_be_larger_than_its_dictionary(tmp_path, tiny, size):
    """The option sets the number of rows; -1 means one for each word.

    The other tests have 50 rows and 52 words.
    """
    words = list(json.loads((DATA / "tiny.vocab.de.json").read_text(encoding="utf-8")))
    rows = size if size > 0 else len(words)
    predictor = "decoder/next_word_predictor/hidden_to_logits"
    bias = np.zeros(rows, np.float32)
    bias[-1] = 9.0  # the last word is the likeliest
    arrays = {
        "decoder/embedding/embeddings": np.zeros([rows, 8], np.float32),
        f"{predictor}/b": bias,
    }
    arrays[f"{predictor}/W"] = np.zeros([8, rows], np.float32)
    run("import-nematus", tiny(arrays, {"target_vocab_size": size}), "--to", tmp_path / "imported")
    (found,) = best(
        load_system(tmp_path / "imported").translator(DecodingOptions(beam_size=1)), ["on"]
    )
    assert set(found.split()) == {"UNK" if size > 0 else words[-1]}


def test_depths_have_two_names_each(tmp_path):
    old = {
        "enc_depth": 2,
        "enc_recurrence_transition_depth": 3,
        "dec_base_recurrence_transition_depth": 4,
    }
    new = {"rnn_enc_depth": 2, "rnn_enc_transition_depth": 3, "rnn_dec_base_transition_depth": 4}
    configs = [
        read_checkpoint_config(write_options(tmp_path / name, *left_out, **options), DICTIONARIES)
        for name, left_out, options in (("old", (), old), ("new", old, new))
    ]
    assert configs[0] == configs[1]
    config = configs[0]
    assert (
        config.rnn_enc_depth,
        config.rnn_enc_transition_depth,
        config.rnn_dec_base_transition_depth,
    ) == (2, 3, 4)


def test_smoothed_weights_are_imported(tmp_path, tiny):
    """Nematus keeps both and translates with the smoothed ones."""
    arrays = read_arrays("tiny_none.step10")
    smoothed = {
        f"{name}_smooth": value + 1
        for name, value in arrays.items()
        if "/" in name and "/Adam" not in name
    }
    run(
        "import-nematus",
        tiny(smoothed, {"exponential_smoothing": 0.01}),
        "--to",
        tmp_path / "smoothed",
    )
    run("import-nematus", tiny(), "--to", tmp_path / "newest")
    systems = [load_system(tmp_path / name) for name in ("smoothed", "newest")]
    for average, newest in zip(*(system.model.variables for system in systems), strict=True):
        np.testing.assert_allclose(average, newest.numpy() + 1, rtol=1e-6)


def test_biases_that_old_versions_never_read_are_ignored(tmp_path, tiny):
    """Before v0.5, the encoder's GRUs without input have biases, which nothing reads."""
    arrays = {}
    for side in ("forward", "backward"):
        first, second = (f"encoder/{side}-stack/level0/gru{number}/" for number in (0, 1))
        for name, size in (("gates", 32), ("proposal", 16)):
            matrix = read_arrays("tiny_none.step10")[f"{first}state_to_{name}"]
            arrays |= {
                f"{second}state_to_{name}": matrix,
                f"{second}{name}_bias": np.ones(size, np.float32),
            }
    run(
        "import-nematus",
        tiny(arrays, {"enc_recurrence_transition_depth": 2}),
        "--to",
        tmp_path / "imported",
    )
    paths = [
        each.path
        for each in load_system(tmp_path / "imported").model.variables
        if "transition" in each.path
    ]
    places = itertools.product(("backward", "forward"), ("gates", "proposal"))
    assert sorted(paths) == [f"encoder/{side}/transition1/state_to_{name}" for side, name in places]


@pytest.mark.parametrize(
    ("variables", "named", "kind"),
    [
        (["gru0/new_std"], {}, "rmsnorm"),  # a model that the paper's authors published
        (["gru0/new_std", "gru0/new_mean"], {}, "layernorm"),
        (["gru0/new_std"], {"layer_normalization_type": "layernorm"}, "layernorm"),
        ([], {}, "layernorm"),
    ],
)
def test_the_variables_tell_a_kind_that_the_options_do_not_name(tmp_path, variables, named, kind):
    path = write_options(tmp_path / "options.json", use_layer_norm=True, **named)
    if kind not in KINDS:
        with pytest.raises(UserError, match=f"{kind}.*patches/apply\\.py apply"):
            read_checkpoint_config(path, DICTIONARIES, variables)
    else:
        assert (
            read_checkpoint_config(path, DICTIONARIES, variables).layer_normalization_type == kind
        )


def test_an_untied_transformer_keeps_its_output_table(tmp_path):
    arrays = read_arrays("ttiny_ln.step10")
    name = "transformer_model/softmax_projection_layer/embedding_table"
    table = np.random.default_rng(0).normal(
        size=arrays["transformer_model/decoder_embedding_layer/embedding_table"].shape
    )
    options = {
        **read_options("ttiny_ln"),
        "tie_decoder_embeddings": False,
        "tie_encoder_decoder_embeddings": False,
    }
    checkpoint = write_checkpoint(
        tmp_path / "untied", {**arrays, name: table.astype(np.float32)}, options
    )
    run("import-nematus", checkpoint, "--to", tmp_path / "model")
    (kernel,) = (
        each
        for each in load_system(tmp_path / "model").model.variables
        if each.path == "decoder/output_kernel"
    )
    np.testing.assert_allclose(kernel, table, rtol=1e-6)


@pytest.mark.slow
def test_a_transformer_before_master_ties_all_tables_or_none(tmp_path):
    """v0.4 and v0.5 use one table for all if `tie_encoder_decoder_embeddings`.

    They lack some options of master.
    """
    tables = [
        f"transformer_model/{side}_embedding_layer/embedding_table"
        for side in ("encoder", "decoder")
    ]
    arrays = read_arrays("ttiny_ln.step10")
    options = read_options("ttiny_ln")
    arrays[tables[0]] = arrays[tables[1]]
    options |= {
        "dictionaries": [options["dictionaries"][1]] * 2,
        "source_vocab_sizes": [options["target_vocab_size"]],
    }
    later = ("layer_normalization_type", "transformer_drophead", "plateau_steps")
    earlier = {name: value for name, value in options.items() if name not in later}
    earlier |= {"tie_encoder_decoder_embeddings": True, "tie_decoder_embeddings": False}
    one_table = {key: value for key, value in arrays.items() if key != tables[1]}
    oldest = {key: value for key, value in one_table.items() if key != tables[0]}
    oldest["transformer_model/embedding_table"] = arrays[tables[0]]
    costs = []
    for name, kept, given in (
        ("master", arrays, options),
        ("v0.5", one_table, earlier),
        ("v0.4", oldest, earlier),
    ):
        run(
            "import-nematus",
            write_checkpoint(tmp_path / name, kept, given),
            "--to",
            tmp_path / f"{name}.imported",
        )
        text = DATA / "ttiny.score.de"
        output = tmp_path / f"{name}.costs"
        run(
            "score",
            "-m",
            tmp_path / f"{name}.imported",
            "-s",
            text,
            "-t",
            text,
            "-n",
            0,
            "-o",
            output,
        )
        costs.append(np.loadtxt(output))
    for found in costs[1:]:
        np.testing.assert_allclose(found, costs[0], rtol=1e-6)
