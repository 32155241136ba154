"""`export-nematus`: what it writes, read back by `import-nematus`, has the costs of the model."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from nmt.config import Config, make_config
from nmt.storage.checkpoints import BEST, save_checkpoint
from nmt.system import build_system, load_system
from nmt.text.sentencepiece_training import train_sentencepiece
from tests.nmt.nematus_files import DATA, read_arrays, read_options, write_checkpoint
from tests.nmt.outcomes import refused

MODELS = Path(__file__).parents[2] / "data" / "golden" / "models"


def write_pieces(directory, model, last="é"):
    """Writes the texts as Nematus reads them: pieces of the SentencePiece models of a directory.

    With a last line.
    """
    for side, ending in (("source", "en"), ("target", "de")):
        processor = sentencepiece.SentencePieceProcessor(model_file=str(model / f"{side}.model"))
        lines = [*(MODELS / f"test.{ending}").read_text().splitlines(), last]
        (directory / ending).write_text("".join(f"{line}\n" for line in lines))
        pieces = [" ".join(processor.encode(line, out_type=str)) for line in lines]
        (directory / f"{ending}.pieces").write_text("".join(f"{line}\n" for line in pieces))


@pytest.fixture
def costs(run, tmp_path):
    """Scores texts of `tmp_path` with a model."""

    def costs(model, source, target):
        output = tmp_path / "costs"
        assert (
            run(
                "score",
                "-m",
                model,
                "-s",
                tmp_path / source,
                "-t",
                tmp_path / target,
                "-n",
                0,
                "-o",
                output,
            )[0]
            == 0
        )
        return np.loadtxt(output)

    return costs


@pytest.fixture
def make_model(tmp_path):
    """Writes a model with random weights and the SentencePiece models of a folder."""

    def make(vocabularies, **options):
        files = {
            field.name: "-"
            for field in dataclasses.fields(Config)
            if field.name.endswith("dataset")
        }
        names = [str(vocabularies / f"{side}.model") for side in ("source", "target")]
        sizes = {"embedding_size": 8, "state_size": 8}
        given = {
            **files,
            "dictionaries": names,
            **sizes,
            "layer_normalization_type": "layernorm",
            **options,
        }
        system = build_system(make_config(given), tuple(map(Path, names)))
        rng = np.random.default_rng(1)
        for weight in system.model.variables:
            weight.assign(rng.normal(0.3, 0.5, size=weight.shape))
        directory = tmp_path / "model"
        directory.mkdir()
        for side, name in zip(("source", "target"), names, strict=True):
            (directory / f"{side}.model").write_bytes(Path(name).read_bytes())
        system.config.save(directory / "config.json")
        save_checkpoint(directory / BEST, system.model.variables, {}, system.fingerprint)
        return directory

    return make


@pytest.fixture
def make_transformer(make_model):
    """Writes a Transformer with random weights."""
    options = {
        "model_type": "transformer",
        "transformer_num_heads": 2,
        "transformer_ffn_hidden_size": 9,
    }
    options |= {"transformer_enc_depth": 2, "transformer_dec_depth": 1}
    return lambda vocabularies=MODELS / "layernorm", **given: make_model(
        vocabularies, **options, **given
    )


def round_trip(run, model, to, *words):
    status, _, said = run("export-nematus", model, "--to", to / "exported", *words)
    assert status == 0, said
    assert run("import-nematus", to / "exported", "--to", to / "imported")[0] == 0
    return to / "imported"


def assert_same_costs(costs, model, imported):
    """Compares the costs of texts with those of their pieces, which the other model reads."""
    expected = costs(model, "en", "de")
    found = costs(imported, "en.pieces", "de.pieces")
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("version", ["master", pytest.param("v0.3", marks=pytest.mark.slow)])
def test_an_rnn_has_the_same_costs(run, costs, make_model, kind, tmp_path, version):
    """Also of unknown words; for master it gets a row for <GO>, whose probability is 0."""
    model = make_model(MODELS / "layernorm", layer_normalization_type=kind)
    if kind == "l2norm":
        assert "it has no l2norm" in refused(
            run("export-nematus", model, "--to", tmp_path / "exported")
        )
        return
    write_pieces(tmp_path, model)
    imported = round_trip(run, model, tmp_path, "--version", version)
    assert_same_costs(costs, model, imported)
    words = json.loads((tmp_path / "exported.target.json").read_text())
    assert list(words)[:2] == (["<EOS>", "<GO>"] if version == "master" else ["eos", "UNK"])
    options = json.loads((tmp_path / "exported.json").read_text())
    assert options["layer_normalization_type"] == (
        "layernorm" if kind == "none" else kind
    )  # patched ones know no "none"
    weights = {
        name.rpartition("/")[2] for name, _ in tf.train.list_variables(str(tmp_path / "exported"))
    }
    rms = {"scale"} if version == "master" else {"new_std"}  # the patches call the gain so
    assert weights & {"scale", "new_std", "new_mean"} == {
        "none": set(),
        "layernorm": {"new_std", "new_mean"},
    }.get(kind, rms)


@pytest.mark.slow
def test_units_named_like_the_special_words_of_v03_are_kept(run, costs, make_model, tmp_path):
    for side, ending in (("source", "en"), ("target", "de")):
        text = MODELS / f"test.{ending}"
        model = tmp_path / f"{side}.model"
        model.write_bytes(train_sentencepiece(text, 20, user_symbols=("eos", "UNK")))
    model = make_model(tmp_path)
    write_pieces(tmp_path, model, "eos UNK é")
    imported = round_trip(run, model, tmp_path, "--version", "v0.3")
    assert_same_costs(costs, model, imported)


def test_a_transformer_has_the_same_costs(run, costs, make_transformer, tmp_path):
    """Its unknown word is read as <GO>."""
    model = make_transformer(tie_decoder_embeddings=True)
    write_pieces(tmp_path, model)
    assert_same_costs(costs, model, round_trip(run, model, tmp_path))


def test_a_symbol_for_the_beginning_becomes_that_of_nematus(run, costs, make_transformer, tmp_path):
    for side, ending in (("source", "en"), ("target", "de")):
        (tmp_path / f"{side}.model").write_bytes(
            train_sentencepiece(MODELS / f"test.{ending}", 13, begin_symbol=True)
        )
    model = make_transformer(tmp_path, tie_decoder_embeddings=True)
    write_pieces(tmp_path, model)
    assert_same_costs(costs, model, round_trip(run, model, tmp_path))
    words = json.loads((tmp_path / "exported.target.json").read_text())
    assert [words[name] for name in ("<EOS>", "<GO>", "<UNK>")] == [0, 1, 2]


@pytest.mark.parametrize(
    "name", [pytest.param("deep_ln", marks=pytest.mark.slow), "ttiny_ln", "tied"]
)
def test_models_of_nematus_keep_their_variables_and_words(run, tmp_path, name):
    arrays = read_arrays(name)
    run(
        "import-nematus",
        write_checkpoint(tmp_path / "their", arrays, read_options(name)),
        "--to",
        tmp_path / "model",
    )
    if name == "tied":  # of v0.3
        again = round_trip(run, tmp_path / "model", tmp_path, "--version", "v0.3")
    else:
        again = round_trip(run, tmp_path / "model", tmp_path)
    systems = [load_system(each) for each in (tmp_path / "model", again)]
    for before, after in zip(*(system.model.variables for system in systems), strict=True):
        assert before.path == after.path
        np.testing.assert_array_equal(before, after)
    assert systems[0].digests.keys() == systems[1].digests.keys()
    for side, vocabulary in zip(("en", "de"), ("source", "target"), strict=True):
        original = json.loads(
            (DATA / f"{Path(read_options(name)['dictionaries'][side == 'de']).name}").read_text()
        )
        kept = json.loads((tmp_path / f"exported.{vocabulary}.json").read_text())
        assert kept.items() <= original.items()


def test_models_that_nematus_lacks_are_refused_in_one_line(run, make_transformer, tmp_path):
    model = make_transformer(transformer_norm_position="post", layer_normalization_type="none")
    for words, said in (
        ((), "cannot read this model: its Transformers always normalize"),
        ((), "; its Transformers lack --transformer_norm_position post"),
        ((), "; its Transformers fail without --tie_decoder_embeddings"),
        (("--version", "v0.3"), "it has no Transformer"),
    ):
        status, _, found = run("export-nematus", model, "--to", tmp_path / "exported", *words)
        assert (status, found.count("\n"), said in found) == (2, 1, True)
    assert not list(tmp_path.glob("exported*"))


def test_a_checkpoint_is_not_overwritten(run, tmp_path):
    words = ("export-nematus", MODELS / "layernorm", "--to", tmp_path / "exported")
    assert run(*words)[0] == 0
    assert "exists already" in refused(run(*words))


def test_a_failure_leaves_nothing(run, full_disk, monkeypatch, tmp_path):
    """While the weights are written, and after them."""
    words = ("export-nematus", MODELS / "layernorm", "--to", tmp_path / "exported")
    with full_disk():
        status, _, said = run(*words)
    assert (status, said.count("\n"), "File too large" in said) == (2, 1, True)
    assert not list(tmp_path.iterdir())
    dumps = json.dumps
    monkeypatch.setattr(json, "dumps", lambda value, **options: 1 / 0 if options else dumps(value))
    with pytest.raises(ZeroDivisionError):
        run(*words)
    assert not list(tmp_path.iterdir())
