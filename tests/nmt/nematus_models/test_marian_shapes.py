"""`import-marian` reads every form in which transformers writes a model: ids, tables, shards,
types."""

import json
import math

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from nmt.decoding.options import DecodingOptions
from nmt.decoding.scoring import Scorer
from nmt.system import load_system
from nmt.text.sentencepiece_training import train_sentencepiece
from nmt.text.vocabulary import load_vocabulary
from tests.nmt.nematus_files import run
from tests.nmt.nematus_models.conftest import DATA, arrays, change_json, set_json, weights_of
from tests.nmt.outcomes import best
from tests.parameters import slow

EXPECTED = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
VOCABULARY = json.loads((DATA / "vocab.json").read_text(encoding="utf-8"))
SIDES = (map(str.encode, EXPECTED[side]) for side in ("sources", "targets"))
PAIRS = list(zip(*SIDES, strict=True))
TABLE = "model.shared.weight"
HEAD = "lm_head.weight"
OWN = {  # our tables -> the names of those that transformers may have beside the shared one
    "encoder/embedding/embeddings": "model.encoder.embed_tokens.weight",
    "decoder/embedding/embeddings": "model.decoder.embed_tokens.weight",
    "decoder/output_kernel": HEAD,
}


def costs_of(system):
    return Scorer(
        system.vocabularies, system.model, DecodingOptions(normalization_alpha=0)
    ).scores_of(PAIRS)


def greedy_of(system):
    options = DecodingOptions(beam_size=1, translation_maxlen=31)
    return best(system.translator(options), [source for source, _ in PAIRS])


def permute(folder, places):
    """Moves row i of the tables, and the id i, to `places[i]`."""
    order = np.argsort(places)

    def change(found):
        found[TABLE] = found[TABLE][order]
        found["final_logits_bias"] = found["final_logits_bias"][:, order]

    arrays(change)(folder)
    set_json(folder / "vocab.json", {piece: int(places[i]) for piece, i in VOCABULARY.items()})
    end = int(places[0])
    padding = int(places[48])
    change_json(
        folder / "config.json",
        eos_token_id=[end],
        pad_token_id=padding,
        decoder_start_token_id=padding,
    )


@pytest.mark.parametrize("seed", [1, *slow(2)])
def test_the_end_the_unknown_word_and_the_padding_have_any_id(folder, tmp_path, seed):
    permute(folder, np.random.default_rng(seed).permutation(49))
    run("import-marian", folder, "--to", tmp_path / "model")
    system = load_system(tmp_path / "model")
    np.testing.assert_allclose(costs_of(system), EXPECTED["costs"], rtol=1e-5)
    assert greedy_of(system) == EXPECTED["greedy"]


def test_pieces_without_an_id_are_unknown_words(folder, tmp_path, capsys):
    """They still split the text: a goat is one unknown word, not five letters."""
    permute(folder, np.array([0, 1, 47, *range(2, 47), 48]))  # goat becomes the last word
    vocabulary = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))
    del vocabulary["▁goat"]
    set_json(folder / "vocab.json", vocabulary)
    run("import-marian", folder, "--to", tmp_path / "model")
    assert "1 pieces of source.spm" in capsys.readouterr().err
    source = load_vocabulary(tmp_path / "model" / "source.model")
    ids = [vocabulary["▁cat"], 1, vocabulary["▁dog"]]
    assert source.encode(tf.constant(["cat goat dog"])).to_list() == [ids]
    assert source.sample([b"cat goat dog"], 1000.0, [1], 9)[0].tolist() == ids
    assert source.size == 47
    assert "▁goat" not in source.words
    assert source.ids_of_units(tf.constant(["▁goat ▁cat"])).to_list() == [[1, vocabulary["▁cat"]]]


@pytest.mark.parametrize("ours", OWN)
@pytest.mark.parametrize("factor", [1.0, 1.5])
def test_a_table_that_differs_is_one_of_its_own(folder, tmp_path, ours, factor):
    """transformers writes copies of the shared table too."""
    arrays(lambda found: found.update({OWN[ours]: found[TABLE] * np.float32(factor)}))(folder)
    found, config = weights_of(folder, tmp_path / "model")
    table = load_file(folder / "model.safetensors")[TABLE]
    differs = factor > 1
    assert config["tie_encoder_decoder_embeddings"] is not (differs and "output" not in ours)
    assert config["tie_decoder_embeddings"] is not (differs and "encoder" not in ours)
    if differs:
        words = len(found[ours])  # a source of its own has no padding
        np.testing.assert_array_equal(found[ours], 1.5 * table[:words])
    for name in set(OWN) & set(found) - {ours}:
        np.testing.assert_array_equal(found[name], table[: len(found[name])])


def test_each_side_has_its_vocabulary(folder, tmp_path):
    """The padding's id of the source is a word of the target there, and translations begin with
    it."""
    pieces = {"source": [], "target": []}
    for side, found in pieces.items():
        other = load_vocabulary_words(folder / f"{side}.spm", tmp_path)
        found += [piece for piece in VOCABULARY if piece in other or piece.startswith("<")]
    source = {piece: i for i, piece in enumerate(pieces["source"])}
    target = {piece: i for i, piece in enumerate(pieces["target"])}
    set_json(folder / "vocab.json", source)
    set_json(folder / "target_vocab.json", target)
    change_json(
        folder / "config.json",
        share_encoder_decoder_embeddings=False,
        vocab_size=len(source),
        decoder_vocab_size=len(target),
        pad_token_id=source["<pad>"],
        decoder_start_token_id=source["<pad>"],
    )
    of_source = [VOCABULARY[piece] for piece in source]
    of_target = [VOCABULARY[piece] for piece in target]

    def change(found):
        table = found.pop(TABLE)
        found[OWN["encoder/embedding/embeddings"]] = table[of_source]
        found[OWN["decoder/embedding/embeddings"]] = table[of_target]
        found["final_logits_bias"] = found["final_logits_bias"][:, of_target]

    table = load_file(folder / "model.safetensors")[TABLE]
    arrays(change)(folder)
    found, config = weights_of(folder, tmp_path / "model")
    words = load_vocabulary(tmp_path / "model" / "target.model").words
    start = source["<pad>"]
    assert len(words) == len(target) - 1
    np.testing.assert_array_equal(
        found["decoder/embedding/embeddings"],
        table[[*(VOCABULARY[piece] for piece in words), 48, of_target[start]]],
    )
    assert found["decoder/output_bias"][-1] < -50  # it is no further word of the softmax
    assert len(found["encoder/embedding/embeddings"]) == len(source) - 1
    assert config["transformer_padding"] == 2
    assert not config["tie_encoder_decoder_embeddings"]


def load_vocabulary_words(path, folder):
    copy = folder / f"{path.stem}.model"
    copy.write_bytes(path.read_bytes())
    return load_vocabulary(copy).words


def test_shards_and_bfloat16_are_read(folder, tmp_path):
    whole = load_file(folder / "model.safetensors")
    expected, _ = weights_of(folder, tmp_path / "whole")
    (folder / "model.safetensors").unlink()
    places = {}
    for i, name in enumerate(whole):
        places[name] = f"model-{i % 3}.safetensors"
    for file in set(places.values()):
        part = {
            name: whole[name].astype(ml_dtypes.bfloat16) for name in places if places[name] == file
        }
        save_file(part, folder / file)
    set_json(folder / "model.safetensors.index.json", {"weight_map": places})
    found, _ = weights_of(folder, tmp_path / "model")
    for name in set(expected) - {"state"}:
        np.testing.assert_allclose(found[name], expected[name], rtol=2**-8)


@pytest.mark.slow
def test_rows_without_a_piece_are_never_chosen_and_count_in_costs(folder, tmp_path, capsys):
    """Even where they are the likeliest by far."""

    def change(found):
        found[TABLE] = np.concatenate([found[TABLE], np.zeros([3, 16], np.float32)])
        bias = found["final_logits_bias"]
        found["final_logits_bias"] = np.concatenate([bias, np.full([1, 3], 90, np.float32)], 1)

    arrays(change)(folder)
    change_json(folder / "config.json", vocab_size=52, decoder_vocab_size=52)
    run("import-marian", folder, "--to", tmp_path / "model")
    assert "3 rows of the tables" in capsys.readouterr().err
    system = load_system(tmp_path / "model")
    assert greedy_of(system) == EXPECTED["greedy"]
    lengths = np.array([len(ids) for ids in EXPECTED["target_ids"]])
    logits = lengths * (90 + math.log(3)) - costs_of(system)  # of the right words
    run("import-marian", DATA, "--to", tmp_path / "original")
    original = load_system(tmp_path / "original")
    source = [EXPECTED["source_ids"][0][:-1]]
    target = [EXPECTED["target_ids"][0][:-1]]
    all_logits = original.model(
        np.array([[*source[0], 0]]), np.ones([1, len(source[0]) + 1]), np.array([[*target[0], 0]])
    )
    right = tf.gather(all_logits[0], [*target[0], 0], batch_dims=1)
    np.testing.assert_allclose(logits[0], tf.reduce_sum(right), rtol=1e-4)


@pytest.mark.parametrize("kind", ["paper", "tensor2tensor"])
def test_positions_of_the_file_count(folder, tmp_path, kind):
    angles = np.arange(20)[:, None] * 10_000.0 ** (-np.arange(8) / (8 - (kind == "tensor2tensor")))
    table = np.concatenate([np.sin(angles), np.cos(angles)], 1, dtype="f4")
    names = [f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")]
    arrays(lambda found: found.update(dict.fromkeys(names, table)))(folder)
    _, config = weights_of(folder, tmp_path / "model")
    assert config["transformer_positions"] == kind


@pytest.mark.parametrize(
    ("theirs", "ours"), [("silu", "swish"), ("gelu", "gelu"), ("gelu_new", "gelu_tanh")]
)
def test_activations_have_several_names(folder, tmp_path, theirs, ours):
    change_json(folder / "config.json", activation_function=theirs)
    _, config = weights_of(folder, tmp_path / "model")
    assert config["transformer_activation"] == ours


def test_weights_of_tensorflow_are_read_without_the_state_of_an_optimizer(folder, tmp_path):
    import h5py

    (folder / "model.safetensors").unlink()
    with h5py.File(folder / "tf_model.h5", "a") as file:
        file["optimizer_weights/model/shared/moment:0"] = np.zeros(3)
    found, _ = weights_of(folder, tmp_path / "model")
    expected, _ = weights_of(DATA, tmp_path / "original")
    for name in set(expected) - {"state"}:
        np.testing.assert_array_equal(found[name], expected[name])


def test_pieces_of_bytes_are_kept(folder, tmp_path):
    text = tmp_path / "text"
    text.write_text("a cat dog\nhen fox zebra\n" * 9, encoding="utf-8")
    for side in ("source", "target"):
        model = train_sentencepiece(text, 274, kind="unigram", byte_fallback=True)
        (folder / f"{side}.spm").write_bytes(model)
    (tmp_path / "bytes.model").write_bytes(model)
    words = load_vocabulary(tmp_path / "bytes.model").words
    rows = [*words, "<pad>"]
    set_json(folder / "vocab.json", {piece: i for i, piece in enumerate(rows)})
    change_json(
        folder / "config.json",
        vocab_size=len(rows),
        decoder_vocab_size=len(rows),
        pad_token_id=len(words),
        decoder_start_token_id=len(words),
    )

    def change(found):
        found[TABLE] = np.zeros([len(rows), 16], np.float32)
        found["final_logits_bias"] = np.zeros([1, len(rows)], np.float32)

    arrays(change)(folder)
    run("import-marian", folder, "--to", tmp_path / "model")
    vocabulary = load_vocabulary(tmp_path / "model" / "target.model")
    ids = vocabulary.encode(tf.constant(["cat é"]))
    assert [words[i] for i in ids.to_list()[0]][-2:] == ["<0xC3>", "<0xA9>"]
    assert vocabulary.decode(ids).numpy()[0].decode() == "cat é"
