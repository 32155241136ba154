import json
import sys

import numpy as np
import pytest
import tensorflow as tf

from experiments.translation.inside.decoder_states import main, measure_states, recorded
from nmt.config import make_config
from nmt.model.gru import GRUStep
from nmt.normalization import EPSILON
from nmt.storage.checkpoints import BEST, save_checkpoint
from nmt.system import build_system, save_system
from nmt.text.parallel_text import ParallelText
from tests.reference import layer_norm

SOURCES = ["a b c", "d", "b b b b", "c a"]
TARGETS = ["a", "b c d a b", "", "d d"]  # 2, 6, 1 and 3 positions with the end


@pytest.fixture(scope="module")
def normal():
    """Draws standard normal numbers in float32."""
    generator = np.random.default_rng(0)
    return lambda *shape: generator.standard_normal(shape).astype(np.float32)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the pairs in dev.en and dev.de, and their dictionary."""
    folder = tmp_path_factory.mktemp("states")
    (folder / "words.json").write_text(json.dumps({word: i for i, word in enumerate(["eos", "UNK", *"abcd"])}))
    for name, lines in {"dev.en": SOURCES, "dev.de": TARGETS}.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return folder


@pytest.fixture(scope="module")
def system(folder, normal):
    """A system with LayerNorm and random weights."""
    text = dict.fromkeys(["source_dataset", "valid_source_dataset"], str(folder / "dev.en"))
    text |= dict.fromkeys(["target_dataset", "valid_target_dataset"], str(folder / "dev.de"))
    options = {"dictionaries": [str(folder / "words.json")] * 2, "embedding_size": 3, "state_size": 4}
    config = make_config({**text, **options, "layer_normalization_type": "layernorm"})
    system = build_system(config, config.dictionaries)
    for variable in system.model.trainable_variables:
        variable.assign(normal(*variable.shape))
    return system


@pytest.fixture(scope="module")
def measured(system, folder):
    return measure_states(system, ParallelText(folder / "dev.en", folder / "dev.de"))


@pytest.mark.parametrize("bias_on_state", [False, True])
@pytest.mark.parametrize("kind", ["none", "layernorm"])
def test_recorded_activations_are_the_normalized_products_of_the_state(kind, bias_on_state, normal):
    gru = GRUStep(3, 4, kind, bias_on_state=bias_on_state, name="gru")
    for variable in gru.trainable_variables:
        variable.assign(normal(*variable.shape))
    state, projected = tf.constant(normal(5, 4)), gru.project_input(tf.constant(normal(5, 3)))
    before, elsewhere, weights = gru.step(state, projected), gru.step(-state, projected), len(gru.weights)
    with recorded(gru) as side:
        meanwhile = gru.step(state, projected)
    for found, expected in zip(side.values(), state_side(gru, state.numpy()), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(meanwhile, before, rtol=1e-6)
    np.testing.assert_allclose(gru.step(-state, projected), elsewhere, rtol=1e-6)  # the norms are restored
    assert len(gru.weights) == weights


def test_the_first_position_has_the_first_state(system, measured):
    means, stds = [], []
    for source in SOURCES:
        ids = tf.constant(system.source_vocabulary.encode([source.encode()]).to_tensor())
        ids = tf.pad(ids, [[0, 0], [0, 1]])
        state, _ = system.model.encode(ids, tf.ones(ids.shape), 1)
        side = np.concatenate(state_side(system.model.decoder.word_gru, state.numpy()), -1)
        means.append(side.mean())
        stds.append(side.std())
    np.testing.assert_allclose(measured["mean"][0], np.mean(means), rtol=1e-4)
    np.testing.assert_allclose(measured["std"][0], np.mean(stds), rtol=1e-4)


def test_padding_is_not_counted(system, measured, tmp_path):
    """The averages equal those of the single sentences, which have no padding."""
    assert measured["positions"] == ["1", "2", "3", "4", "all"]
    assert measured["tokens"] == [4, 3, 2, 1, 12]
    alone = []
    for number, pair in enumerate(zip(SOURCES, TARGETS, strict=True)):
        paths = [tmp_path / f"{number}.{side}" for side in ("en", "de")]
        for path, line in zip(paths, pair, strict=True):
            path.write_text(f"{line}\n")
        alone.append(measure_states(system, ParallelText(*paths)))
    for at, tokens in enumerate(measured["tokens"][:-1]):
        reach = [each for each in alone if len(each["positions"]) > at + 1]
        assert len(reach) == tokens
        for pick in (lambda each: each, lambda each: each["second"]):
            for name in ("mean", "std"):
                expected = np.mean([pick(each)[name][at] for each in reach])
                np.testing.assert_allclose(pick(measured)[name][at], expected, rtol=1e-4)
    weights = [each["tokens"][-1] for each in alone]
    expected = np.average([each["std"][-1] for each in alone], weights=weights)
    np.testing.assert_allclose(measured["std"][-1], expected, rtol=1e-4)


def test_reference_words_are_read_at_the_next_position(system, measured, folder, tmp_path):
    """The word is read between the two GRUs, so it changes the first GRU's activations one position later."""
    (tmp_path / "other.de").write_text("".join(f"{line}\n" for line in [TARGETS[0], "c c d a b", *TARGETS[2:]]))
    other = measure_states(system, ParallelText(folder / "dev.en", tmp_path / "other.de"))

    def differs(pick):
        return [abs(there - here) > 1e-5 for there, here in zip(pick(other), pick(measured), strict=True)][:4]

    assert differs(lambda each: each["mean"]) == [False, False, True, True]
    assert differs(lambda each: each["second"]["mean"]) == [False, True, True, True]


def test_the_script_measures_the_best_checkpoint(system, measured, folder, tmp_path, monkeypatch):
    model, to = tmp_path / "model", tmp_path / "activations.json"
    model.mkdir()
    save_system(system, model)
    save_checkpoint(model / BEST, system.model.variables, {}, system.made_with)
    files = ["--source", folder / "dev.en", "--target", folder / "dev.de", "--to", to]
    monkeypatch.setattr(sys, "argv", ["activations", "--model", str(model), *map(str, files)])
    main()
    written = json.loads(to.read_text())
    np.testing.assert_allclose(written["mean"], measured["mean"], rtol=1e-5)
    assert written.keys() == measured.keys()


def state_side(gru, state):
    """Returns N(h U) of gates and proposal, in float64."""

    def norm(layer, x):
        return layer_norm(x, *(v.numpy().astype(np.float64) for v in layer.weights), EPSILON) if layer.weights else x

    biases = [0.0 if bias is None else bias for _, bias in gru.state_matrices]
    gates = state.astype(np.float64) @ gru.state_to_gates.numpy() + np.asarray(biases[0])
    proposal = state.astype(np.float64) @ gru.state_to_proposal.numpy() + np.asarray(biases[1])
    return norm(gru.gates_state_norm, gates), norm(gru.proposal_state_norm, proposal)
