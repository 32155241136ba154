"""Equality with real Nematus: costs, translations and updates, from what its versions wrote; and what is refused.

`tests/data/nematus/README.md` says how those files came to be.
"""

import collections
import dataclasses
import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from nmt.__main__ import main
from nmt.checkpoints import save_checkpoint
from nmt.data import Batch, pad
from nmt.errors import UserError
from nmt.layers import DropoutMasks
from nmt.nematus import read_config
from nmt.normalization import KINDS
from nmt.rnnsearch import Rates
from nmt.system import load_system
from nmt.training import Trainer

DATA = Path(__file__).parents[1] / "data" / "nematus"

# Checkpoint -> kind of normalization. The first four as they were written, the others without the optimizer's part.
COSTS = {
    "tiny_none": "none",
    "tiny_ln": "layernorm",
    "tiny_rms": "rmsnorm",
    "tiny_prms": "prmsnorm",
    "small_ln": "layernorm",
    "small_rms": "rmsnorm",
    "relu": "none",
    "prelu": "none",
    "linear": "none",
    "tied": "layernorm",
    "master": "none",
    "master_rms": "rmsnorm",
}
SEARCHES = {"mid": "none", "small_ln": "layernorm", "small_rms": "rmsnorm"}
TINY = ["tiny_none", "tiny_ln", "tiny_rms", "tiny_prms"]


def in_this_tree(names):
    return [name for name in names if COSTS.get(name, "none") in KINDS]


def run(*arguments):
    """Runs a command."""
    with mock.patch.object(sys, "argv", ["nmt", *map(str, arguments)]):
        main()


def read_arrays(name):
    with np.load(DATA / f"{name}.npz") as file:
        return dict(file)


def write_checkpoint(path, arrays, options):
    """Writes a checkpoint in the form of TensorFlow 1, with options that name dictionaries which are there."""
    options = {**options, "dictionaries": [str(DATA / Path(name).name) for name in options["dictionaries"]]}
    path.with_name(f"{path.name}.json").write_text(json.dumps(options), encoding="utf-8")
    names = sorted(arrays)
    tensors = [tf.constant(arrays[name]) for name in names]
    tf.raw_ops.SaveV2(prefix=str(path), tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)
    return path


def read_options(name):
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """Imports a checkpoint of the data, once, and returns the model's directory."""
    folder = tmp_path_factory.mktemp("imported")

    def get(name):
        if not (folder / name).exists():
            checkpoint = DATA / name
            if not checkpoint.with_name(f"{name}.index").exists():
                checkpoint = write_checkpoint(folder / f"{name}-60", read_arrays(name), read_options(name))
            run("import-nematus", checkpoint, "--to", folder / name)
        return folder / name

    return get


# ---- the same numbers ----


def text_of(name):
    stem = "small.source" if name.startswith("small") else "tiny.score"
    return DATA / f"{stem}.en", DATA / f"{stem}.de"


@pytest.mark.parametrize("name", in_this_tree(COSTS))
def test_costs(imported, tmp_path, name):
    source, target = text_of(name)
    expected = np.loadtxt(DATA / f"{name}.scores.txt", ndmin=2)  # the cost, and for some the cost over the length
    for alpha, costs in enumerate(expected.T):
        run("score", "-m", imported(name), "-s", source, "-t", target, "-n", alpha, "-o", tmp_path / "costs")
        np.testing.assert_allclose(np.loadtxt(tmp_path / "costs"), costs, rtol=0, atol=1e-4)


def test_costs_with_smoothed_labels(imported):
    """Master's `score.py` gives the training's loss, which for a model trained with smoothed labels is smoothed."""
    system = load_system(imported("smoothed"))
    assert system.config.label_smoothing == 0.1
    lines = [path.read_text(encoding="utf-8").splitlines() for path in text_of("smoothed")]
    source, target = (
        pad(vocabulary.encode(tf.constant(side)))
        for vocabulary, side in zip((system.source_vocabulary, system.target_vocabulary), lines, strict=True)
    )
    costs = system.model.costs(*source, *target, label_smoothing=system.config.label_smoothing)
    np.testing.assert_allclose(costs, np.loadtxt(DATA / "smoothed.scores.txt"), rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", in_this_tree(SEARCHES))
@pytest.mark.parametrize(("beam", "alpha"), [(1, 0), (5, 0), (5, 1)])
def test_translations(imported, name, beam, alpha):
    """Greedy ones are the same; of others nearly all are the same or cheaper, and all together are no dearer.

    The model `mid` is half trained, so that much depends on the search; the others are all but sure.
    """
    system = load_system(imported(name))
    lines = (DATA / "small.source.en").read_text(encoding="utf-8").splitlines()
    golden = DATA / (f"mid.beam{beam}.{'norm' if alpha else 'raw'}.txt" if name == "mid" else "small.source.de")
    theirs = golden.read_text(encoding="utf-8").splitlines()
    ours = system.translator(beam, alpha).best(lines)
    if beam == 1:
        assert ours == theirs
        return

    def costs(translations):
        source = pad(system.source_vocabulary.encode(tf.constant(lines)))
        target, mask = pad(system.target_vocabulary.encode(tf.constant(translations)))
        return (system.model.costs(*source, target, mask) / tf.reduce_sum(mask, -1) ** alpha).numpy()

    our_costs, their_costs = costs(ours), costs(theirs)
    good = [a == b or c <= d for a, b, c, d in zip(ours, theirs, our_costs, their_costs, strict=True)]
    assert len(good) == 100
    assert sum(good) >= 98
    assert our_costs.sum() <= their_costs.sum() * (1 + 1e-6)


def trainer_after_ten(imported, tmp_path, name):
    """Makes a trainer that goes on from Nematus's weights and Adam's moments after ten updates, with its batches."""
    arrays, options = read_arrays(f"{name}.step10"), read_options(name)
    saved = {}
    for kind, ending in {"weights": "", "momentum": "/Adam", "velocity": "/Adam_1"}.items():
        own = {key.removesuffix(ending): value for key, value in arrays.items() if key.endswith(ending)}
        own = {key: value for key, value in own.items() if not key.endswith(("/Adam", "/Adam_1", "_power", "time"))}
        run("import-nematus", write_checkpoint(tmp_path / kind, own, options), "--to", tmp_path / f"{kind}10")
        with np.load(tmp_path / f"{kind}10" / "best.npz") as file:
            slots = {key: value for key, value in file.items() if key != "state"}
        adam = {f"adam/{key.replace('/', '_')}_{kind}": value for key, value in slots.items()}
        saved |= adam if ending else slots
    rate = np.float32(options["learning_rate"])
    saved |= {"adam/iteration": np.int64(arrays["time"]), "adam/learning_rate": rate}
    named = [SimpleNamespace(path=path, numpy=lambda value=value: value) for path, value in saved.items()]
    state = {"update": 10, "seconds": 0.0, "bad_validations": 0, "validations": []}
    save_checkpoint(tmp_path / "last.npz", named, state)

    system = load_system(imported(name))
    system.model.set_weights([np.zeros_like(weight) for weight in system.model.get_weights()])  # all come from the file
    ids = json.loads((DATA / "tiny.batches.json").read_text())
    width = max(len(words) for batch in ids for side in batch.values() for words in side) + 1  # one shape, one trace
    padded = [[pad(tf.ragged.constant(batch[side]), width) for side in ("source", "target")] for batch in ids]
    batches = [Batch(*source, *target) for source, target in padded]
    trainer = Trainer(
        system.model,
        dataclasses.replace(system.config, finish_after=20, valid_freq=1, patience=99),
        tmp_path,
    )
    data = SimpleNamespace(batches=lambda first: batches[first:], batches_per_epoch=10)
    valid = SimpleNamespace(batches=batches[:1], sources=[b""], references=["none"])
    return lambda: trainer.train(data, valid, lambda lines: ["none"]), system.model


@pytest.mark.parametrize("name", in_this_tree(TINY))
def test_ten_updates(imported, tmp_path, name):
    train, model = trainer_after_ten(imported, tmp_path, name)
    progress = train()
    losses = [validation.train_loss for validation in progress.validations[1:]]  # the first is of what was read
    np.testing.assert_allclose(losses, np.loadtxt(DATA / f"{name}.losses.txt")[10:, 1], rtol=1e-5)
    with np.load(imported(name) / "best.npz") as expected:
        for weight in model.weights:
            np.testing.assert_allclose(weight, expected[weight.path], rtol=0, atol=1e-4, err_msg=weight.path)


def test_dropout_masks(make_model):
    """Those of Nematus, for whole words or a sequence at all times: batch 2, words 3 and 4, embedding 5, state 7."""
    drawn, draw = collections.Counter(), DropoutMasks.draw

    def recorded(self, rate, shape):
        drawn[(rate, *map(int, shape))] += 1
        return draw(self, rate, shape)

    model = make_model(rates=Rates(embedding=0.1, hidden=0.2, source=0.3, target=0.4))
    with mock.patch.object(DropoutMasks, "draw", recorded):
        pairs = (np.ones([2, 3], int), np.ones([2, 3], "f4"), np.ones([2, 4], int), np.ones([2, 4], "f4"))
        model.total_cost(*pairs, dropout_seed=tf.constant([1, 2]))
    words = {(0.3, 2, 3, 1): 1, (0.4, 2, 4, 1): 1}
    embeddings = {(0.1, 2, 5): 3 * 2 + 2}  # gates and proposal of three GRUs; the last word and the sum in the output
    states = {(0.2, 2, 7): 4 * 2 + 2}  # gates and proposal of four GRUs; in the attention; in the output
    contexts = {(0.2, 2, 14): 2 + 3}  # the last GRU's input; the first state; in the attention; in the output
    assert drawn == {**words, **embeddings, **states, **contexts}


# ---- what is read, and how ----


@pytest.fixture
def tiny(tmp_path):
    """Writes the checkpoint `tiny_none` with changes of variables and options; `None` takes one away."""

    def write(variables=None, options=None, name="model"):
        arrays = {k: v for k, v in {**read_arrays("tiny_none.step10"), **(variables or {})}.items() if v is not None}
        given = {**read_options("tiny_none"), **(options or {})}
        return write_checkpoint(tmp_path / name, arrays, {k: v for k, v in given.items() if v is not None})

    return write


def refused(capsys, *arguments):
    """Runs an import that fails, and returns what it says."""
    with pytest.raises(SystemExit) as stop:
        run("import-nematus", *arguments)
    assert stop.value.code == 2
    return capsys.readouterr().err


def write_options(path, *names, **changes):
    options = {**read_options("tiny_none"), **changes}
    path.write_text(json.dumps({k: v for k, v in options.items() if k not in names}))
    return path


def test_the_spellings_of_all_versions_mean_the_same(tmp_path):
    old = {"dim_word": 8, "dim": 16, "n_words_src": 50, "n_words": 50, "lrate": 0.01, "layer_normalisation": True}
    old_names = ("embedding_size", "state_size", "source_vocab_sizes", "target_vocab_size", "learning_rate")
    new = {"rnn_layer_normalization": True, "layer_normalization_type": "layernorm", "rnn_enc_depth": 1}
    configs = [
        read_config(write_options(tmp_path / name, *left_out, dictionaries=dictionaries, **options))
        for dictionaries in [[str(DATA / f"tiny.vocab.{side}.json") for side in ("en", "de")]]
        for name, left_out, options in [
            ("v0.3", (), {"use_layer_norm": True}),
            ("before", (*old_names, "use_layer_norm"), old),
            ("later", ("use_layer_norm", "enc_depth"), new),
        ]
    ]
    assert configs[0] == configs[1] == configs[2]
    assert configs[0].layer_normalization_type == "layernorm"
    assert (configs[0].embedding_size, configs[0].state_size, configs[0].source_vocab_sizes) == (8, 16, 50)


def test_dropout_counts_where_it_was_turned_on(tmp_path):
    dictionaries = tuple(DATA / f"tiny.vocab.{side}.json" for side in ("en", "de"))
    off = read_config(DATA / "tiny_none.json")
    on = read_config(write_options(tmp_path / "on", use_dropout=True), dictionaries)
    later = {"rnn_use_dropout": True, "rnn_dropout_hidden": 0.1, "rnn_dropout_embedding": 0.2}
    master = read_config(
        write_options(tmp_path / "later", "dropout_hidden", "dropout_embedding", **later), dictionaries
    )
    rates = [(config.rnn_dropout_embedding, config.rnn_dropout_hidden) for config in (off, on, master)]
    assert rates == [(0.0, 0.0), (0.2, 0.2), (0.2, 0.1)]


def test_options_beside_the_checkpoint_are_its_own_or_the_model_s(tmp_path, tiny):
    """Nematus v0.3 writes MODEL.json alone, later versions MODEL-N.json too."""
    checkpoint = tiny(name="model-10")
    (tmp_path / "model-10.json").rename(tmp_path / "model.json")
    run("import-nematus", checkpoint, "--to", tmp_path / "imported")
    assert (tmp_path / "imported" / "nematus.json").read_text() == (tmp_path / "model.json").read_text()


def test_dictionaries_given_are_taken_and_kept(tmp_path, tiny):
    given = [tmp_path / f"{side}.json" for side in ("a", "b")]
    for path, side in zip(given, ("en", "de"), strict=True):
        shutil.copy(DATA / f"tiny.vocab.{side}.json", path)
    run("import-nematus", tiny(), "--to", tmp_path / "imported", "--dictionaries", *given)
    assert (tmp_path / "imported" / "target.json").read_text() == given[1].read_text()


@pytest.mark.parametrize("size", [60, -1])
def test_vocabulary_as_large_as_told_or_as_its_dictionary(tmp_path, tiny, size):
    """Nematus makes as many rows as it is told, even more than there are words; 50 of 52 are in the other tests."""
    words = list(json.loads((DATA / "tiny.vocab.de.json").read_text(encoding="utf-8")))
    rows = size if size > 0 else len(words)
    predictor = "decoder/next_word_predictor/hidden_to_logits"
    bias = np.zeros(rows, np.float32)
    bias[-1] = 9.0  # the last word is the likeliest
    arrays = {"decoder/embedding/embeddings": np.zeros([rows, 8], np.float32), f"{predictor}/b": bias}
    arrays[f"{predictor}/W"] = np.zeros([8, rows], np.float32)
    run("import-nematus", tiny(arrays, {"target_vocab_size": size}), "--to", tmp_path / "imported")
    (found,) = load_system(tmp_path / "imported").translator(1, 0.0).best(["on"])
    assert set(found.split()) == {"UNK" if size > 0 else words[-1]}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("enc_depth", 2),
        ("rnn_enc_depth", 4),
        ("enc_recurrence_transition_depth", 2),
        ("rnn_dec_depth", 2),
        ("rnn_dec_base_transition_depth", 4),
        ("factors", 2),
        ("rnn_lexical_model", True),
        ("softmax_mixture_size", 3),
        ("model_type", "transformer"),
        ("tie_encoder_decoder_embeddings", True),
        ("exponential_smoothing", 0.001),
    ],
)
def test_options_that_are_not_supported(tmp_path, option, value):
    with pytest.raises(UserError, match=f"{option} is {value!r}; only .* is supported"):
        read_config(write_options(tmp_path / "options.json", **{option: value}))


@pytest.mark.parametrize("kind", [name for name in ("rmsnorm", "prmsnorm", "a new one") if name not in KINDS])
def test_kinds_that_this_tree_lacks_name_the_patch_command(tmp_path, kind):
    path = write_options(tmp_path / "options.json", use_layer_norm=True, layer_normalization_type=kind)
    with pytest.raises(UserError, match=r"patches/apply\.py apply"):
        read_config(path, [DATA / f"tiny.vocab.{side}.json" for side in ("en", "de")])


@pytest.mark.skipif("rmsnorm" not in KINDS, reason="needs a tree with the patches applied")
def test_the_faster_class_of_a_patched_master_is_rmsnorm(tmp_path):
    options = {"rnn_layer_normalization": True, "layer_normalization_type": "rmsnorm_fast"}
    path = write_options(tmp_path / "options.json", **options)
    config = read_config(path, [DATA / f"tiny.vocab.{side}.json" for side in ("en", "de")])
    assert config.layer_normalization_type == "rmsnorm"


BIAS = "decoder/base/gru0/gates_bias"


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({BIAS: None}, f"{BIAS} [32] is missing"),
        ({BIAS: np.zeros(31, np.float32)}, f"{BIAS} has shape [31], where the model has [32]"),
        ({"decoder/high/gates_bias": np.zeros(3, np.float32)}, "decoder/high/gates_bias [3] is left over"),
        ({"decoder/embedding/embeddings": np.zeros([9, 8], np.float32)}, "embeddings has shape [9, 8], where"),
    ],
    ids=["missing", "another shape", "left over", "another vocabulary"],
)
def test_variables_that_do_not_fit_are_named_and_nothing_is_written(tmp_path, tiny, capsys, variables, said):
    assert said in refused(capsys, tiny(variables), "--to", tmp_path / "new" / "imported")
    assert not (tmp_path / "new").exists()


def test_files_that_are_missing_or_damaged(tmp_path, tiny, capsys):
    checkpoint, to = tiny(), tmp_path / "imported"
    assert "give the name without ending" in refused(capsys, f"{checkpoint}.index", "--to", to)
    missing = tmp_path / "missing.json"
    assert f"there is no dictionary {missing}" in refused(
        capsys, checkpoint, "--to", to, "--dictionaries", missing, missing
    )
    assert "is there already" in refused(capsys, checkpoint, "--to", tmp_path)
    (tmp_path / "model.json").unlink()
    assert f"there is no {tmp_path / 'model.json'}" in refused(capsys, checkpoint, "--to", to)
    data = tmp_path / "model.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:1000])
    assert "is damaged or no checkpoint" in refused(capsys, checkpoint, "--to", to)
    assert not to.exists()
