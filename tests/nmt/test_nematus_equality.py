"""Equality with Nematus: costs, translations and updates, compared with files that Nematus wrote.

`tests/data/nematus/README.md` says how the files were made.
"""

import dataclasses
import itertools
import json
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from nmt.decoding.options import DecodingOptions
from nmt.normalization import KINDS
from nmt.storage.checkpoints import save_checkpoint
from nmt.system import load_ensemble, load_system
from nmt.text.batches import Batch, pad, pad_rows
from nmt.training.trainer import Trainer
from nmt.training.update import Update
from tests.nmt.nematus_files import DATA, read_arrays, read_options, run, write_checkpoint
from tests.nmt.outcomes import best

# Checkpoint -> kind of normalization. The first three are original files, the others lack the
# optimizer's state.
COSTS = {
    "tiny_ln": "layernorm",
    "tiny_rms": "rmsnorm",
    "tiny_prms": "prmsnorm",
    "relu": "none",
    "prelu": "none",
    "linear": "none",
    "tied": "layernorm",
    "master": "none",
    "master_rms": "rmsnorm",
    "ttiny_ln": "layernorm",
    "ttiny_rms": "rmsnorm",
    "ttiny_rms_smooth": "rmsnorm",
    "ttiny_prms": "prmsnorm",
    "tsmall_ln": "layernorm",
    "tsmall_rms": "rmsnorm",
    "deep_ln": "layernorm",
}
SEARCHES = {
    "mid": "none",
    "tsmall_ln": "layernorm",
    "tsmall_rms": "rmsnorm",
}
TINY = ["tiny_ln", "tiny_rms", "tiny_prms", "ttiny_ln", "ttiny_rms_smooth", "ttiny_ln_tokens"]
# Checkpoint, without what follows a `_` -> its texts. Those of all other models are tiny.score.
TEXTS = {
    "mid": "small.source",
    "tsmall": "tsmall.source",
    "ttiny": "ttiny.score",
    "deep": "ttiny.score",
}


def mostly_slow(names, *quick):
    """Returns the names of models that this tree can build.

    All but the quick ones are slow tests.
    """
    return [
        name if name in quick else pytest.param(name, marks=pytest.mark.slow)
        for name in names
        if COSTS.get(name, "none") in KINDS
    ]


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """Imports a checkpoint, each only once, and returns the model's directory."""
    folder = tmp_path_factory.mktemp("imported")

    def get(name):
        if not (folder / name).exists():
            checkpoint = DATA / name
            if not checkpoint.with_name(f"{name}.index").exists():
                checkpoint = write_checkpoint(
                    folder / f"{name}-60", read_arrays(name), read_options(name)
                )
            run("import-nematus", checkpoint, "--to", folder / name)
        return folder / name

    return get


def text_of(name):
    stem = TEXTS.get(name.partition("_")[0], "tiny.score")
    return DATA / f"{stem}.en", DATA / f"{stem}.de"


@pytest.mark.parametrize(
    "name", mostly_slow(COSTS, "tiny_ln", "tsmall_ln", "master_rms", "ttiny_prms")
)
def test_costs_equal_nematus(imported, tmp_path, name):
    source, target = text_of(name)
    expected = np.loadtxt(
        DATA / f"{name}.scores.txt", ndmin=2
    )  # columns: cost and, in some files, cost over length
    for alpha, costs in enumerate(expected.T):
        run(
            "score",
            "-m",
            imported(name),
            "-s",
            source,
            "-t",
            target,
            "-n",
            alpha,
            "-o",
            tmp_path / "costs",
        )
        np.testing.assert_allclose(np.loadtxt(tmp_path / "costs"), costs, rtol=0, atol=1e-4)


def test_costs_with_smoothed_labels(imported):
    """Master's `score.py` writes the training loss, which has smoothed labels if the training
    had."""
    system = load_system(imported("smoothed"))
    assert system.config.label_smoothing == 0.1
    lines = [path.read_text(encoding="utf-8").splitlines() for path in text_of("smoothed")]
    source, target = (
        pad(vocabulary.encode(tf.constant(side)))
        for vocabulary, side in zip(system.vocabularies, lines, strict=True)
    )
    cost = tf.function(
        lambda *pair: system.model.total_cost(*pair, label_smoothing=system.config.label_smoothing)
    )
    pairs = zip(*(tf.split(x, len(x)) for x in (*source, *target)), strict=True)
    np.testing.assert_allclose(
        [cost(*pair) for pair in pairs], np.loadtxt(DATA / "smoothed.scores.txt"), atol=1e-4
    )


@pytest.mark.parametrize("name", mostly_slow(SEARCHES, "tsmall_ln"))
@pytest.mark.parametrize(
    ("beam", "alpha"),
    [
        pytest.param(1, 0, marks=pytest.mark.slow),
        pytest.param(5, 0, marks=pytest.mark.slow),
        (5, 1),
    ],
)
def test_translations_equal_nematus(imported, name, beam, alpha):
    """Greedy translations are equal. Of the others at least 98 of 100 are equal or cheaper, and
    their sum is no higher.

    The model `mid` is half trained, so the search matters most; the others are nearly certain of
    every word.
    """
    path = DATA / f"{name}.beam{beam}.{'norm' if alpha else 'raw'}.txt"
    system = load_system(imported(name))
    lines = text_of(name)[0].read_text(encoding="utf-8").splitlines()
    theirs = path.read_text(encoding="utf-8").splitlines()
    options = DecodingOptions(beam_size=beam, normalization_alpha=alpha)
    ours = best(system.translator(options), lines)
    if beam == 1:
        assert ours == theirs
        return

    def costs(translations):
        source = pad(system.vocabularies.source.encode(tf.constant(lines)))
        target, mask = pad(system.vocabularies.target.encode(tf.constant(translations)))
        return (
            system.model.costs(*source, target, mask) / tf.reduce_sum(mask, -1) ** alpha
        ).numpy()

    our_costs = costs(ours)
    their_costs = costs(theirs)
    good = [
        a == b or c <= d for a, b, c, d in zip(ours, theirs, our_costs, their_costs, strict=True)
    ]
    assert len(good) == 100
    assert sum(good) >= 98
    assert our_costs.sum() <= their_costs.sum() * (1 + 1e-6)


@pytest.mark.parametrize("names", [["tsmall_ln", "tsmall_rms"]] if "rmsnorm" in KINDS else [])
def test_an_ensemble_equals_nematus(imported, names):
    """The sums of the costs of single models are cheaper or equal for our translations.

    Nearly all are the same.
    """
    system = load_ensemble([imported(name) for name in names])
    lines = (DATA / "tsmall.source.en").read_text(encoding="utf-8").splitlines()
    theirs = (DATA / "ensemble_ln_rms.beam5.raw.txt").read_text(encoding="utf-8").splitlines()
    ours = best(system.translator(DecodingOptions(normalization_alpha=0)), lines)
    assert sum(a == b for a, b in zip(ours, theirs, strict=True)) >= 98
    source = pad(system.vocabularies.source.encode(tf.constant(lines)))
    costs = [
        system.model.costs(*source, *pad(system.vocabularies.target.encode(tf.constant(each))))
        for each in (ours, theirs)
    ]
    assert float(tf.reduce_sum(costs[0])) <= float(tf.reduce_sum(costs[1])) * (1 + 1e-6)


def trainer_after_ten(imported, tmp_path, name):
    """Makes a trainer that resumes after ten updates, with Nematus's weights, Adam moments and
    batches."""
    arrays = read_arrays(f"{name.removesuffix('_tokens')}.step10")
    options = read_options(name)
    saved = {}
    for kind, ending in {"weights": "", "momentum": "/Adam", "velocity": "/Adam_1"}.items():
        own = {
            key.removesuffix(ending): value for key, value in arrays.items() if key.endswith(ending)
        }
        own = {
            key: value
            for key, value in own.items()
            if not key.endswith(("/Adam", "/Adam_1", "_power", "time"))
        }
        run(
            "import-nematus",
            write_checkpoint(tmp_path / kind, own, options),
            "--to",
            tmp_path / f"{kind}10",
        )
        with np.load(tmp_path / f"{kind}10" / "best.npz") as file:
            slots = {key: value for key, value in file.items() if key != "state"}
        adam = {f"adam/{key.replace('/', '_')}_{kind}": value for key, value in slots.items()}
        saved |= adam if ending else slots
    rate = np.float32(options["learning_rate"])
    saved |= {"adam/iteration": np.int64(arrays["time"]), "adam/learning_rate": rate}
    named = [
        SimpleNamespace(path=path, numpy=lambda value=value: value) for path, value in saved.items()
    ]
    state = {"update": 10, "seconds": 0.0, "bad_validations": 0, "validations": []}
    save_checkpoint(tmp_path / "last.npz", named, state, {})

    system = load_system(imported(name))
    system.model.set_weights(
        [np.zeros_like(weight) for weight in system.model.get_weights()]
    )  # so that all weights come from the file
    batches_of = "tiny" if name.startswith("tiny") else "ttiny"
    ids = json.loads((DATA / f"{batches_of}.batches.json").read_text())
    texts = [[*batch["source"], *batch["target"]] for batch in ids]
    width = max(map(len, itertools.chain(*texts))) + 1  # one shape for all batches, so one trace
    batches = [
        Batch(*pad_rows(batch["source"], width), *pad_rows(batch["target"], width)) for batch in ids
    ]
    config = dataclasses.replace(system.config, finish_after=20, valid_freq=1, patience=99)
    trainer = Trainer(Update(system.model, config), tmp_path, {})
    data = SimpleNamespace(
        sizes=[],
        batches=lambda first, share: iter(batches[first:]),
        batches_per_epoch=10,
    )

    def train():
        trainer.train(data, lambda: ({"valid_loss": 1.0, "bleu": 0.0, "chrf": 0.0}, [], []))
        return trainer.progress

    return train, system.model


@pytest.mark.parametrize("name", mostly_slow(TINY, "ttiny_ln_tokens"))
def test_ten_updates_equal_nematus(imported, tmp_path, name):
    train, model = trainer_after_ten(imported, tmp_path, name)
    progress = train()
    losses = [
        validation.train_loss for validation in progress.validations[1:]
    ]  # the first belongs to the checkpoint
    np.testing.assert_allclose(losses, np.loadtxt(DATA / f"{name}.losses.txt")[-10:, 1], rtol=1e-5)
    with np.load(imported(name) / "best.npz") as expected:
        for weight in model.weights:
            np.testing.assert_allclose(
                weight, expected[weight.path], rtol=0, atol=1e-4, err_msg=weight.path
            )


def test_dropout_masks_equal_nematus(make_model, drawn_masks):
    """Those of Nematus, for whole words or a sequence at all times: batch 2, words 3 and 4,
    embedding 5, state 7."""
    rates = {"embedding": 0.1, "hidden": 0.2, "source": 0.3, "target": 0.4}
    model = make_model(**{f"rnn_dropout_{name}": rate for name, rate in rates.items()})
    pairs = (
        np.ones([2, 3], int),
        np.ones([2, 3], "f4"),
        np.ones([2, 4], int),
        np.ones([2, 4], "f4"),
    )
    model.total_cost(*pairs, dropout_seed=tf.constant([1, 2]))
    words = {8: 1 + 1}  # masks [2, 3, 1] and [2, 4, 1]
    embeddings = {
        12: 3 * 2 + 2
    }  # [2, 5]: gates and proposal of three GRUs; the last word and the sum in the output
    states = {
        16: 4 * 2 + 2
    }  # [2, 7]: gates and proposal of four GRUs; in the attention; in the output
    contexts = {
        28: 2 + 3
    }  # [2, 14]: the last GRU's input; the first state; in the attention; in the output
    assert drawn_masks == {**words, **embeddings, **states, **contexts}
