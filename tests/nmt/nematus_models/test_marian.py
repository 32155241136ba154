"""`import-marian`: a model computes what transformers computes, and damaged or other models are
refused."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from nmt.decoding.options import DecodingOptions
from nmt.decoding.scoring import Scorer
from nmt.errors import UserError
from nmt.normalization import KINDS
from nmt.system import build_system, load_system, reload_weights
from nmt.text.sentencepiece_training import train_sentencepiece
from tests.nmt.nematus_files import run
from tests.nmt.nematus_models.conftest import DATA, arrays
from tests.nmt.outcomes import best

EXPECTED = json.loads((DATA / "expected.json").read_text(encoding="utf-8"))
SOURCES = [line.encode() for line in EXPECTED["sources"]]
LIMITS = {
    "translation_maxlen": 31,
    "batch_size": 5,
}  # words; transformers counts the first one and the end too
BEAM = DecodingOptions(beam_size=4, **LIMITS)


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    directory = tmp_path_factory.mktemp("marian") / "model"
    run("import-marian", DATA, "--to", directory)
    return directory


@pytest.fixture(scope="module")
def system(imported):
    return load_system(imported)


@pytest.mark.parametrize("side", ["source", "target"])
def test_ids_are_those_of_transformers(system, side):
    """Also those of a code that is unknown, and of characters that only the other side knows."""
    vocabulary = getattr(system.vocabularies, side)
    lines = EXPECTED[f"{side}s"]
    assert vocabulary.encode(tf.constant(lines)).to_list() == [
        ids[:-1] for ids in EXPECTED[f"{side}_ids"]
    ]


def test_codes_begin_sampled_lines_too(system):
    """With an exponent that makes the likeliest segmentation certain, nothing is random."""
    drawn = system.vocabularies.source.sample(SOURCES[:6], 1000.0, [1], 100)
    assert [row.tolist() for row in drawn] == [ids[:-1] for ids in EXPECTED["source_ids"][:6]]


def test_a_code_counts_in_the_longest_segmentation(system):
    """One that is longer by the code than it may be is replaced by the usual one."""
    sample = system.vocabularies.source.sample
    lines = [line for line in SOURCES if line.startswith(b">>")]
    longer = 0
    usual = sample(lines, 1000.0, [1], 100)
    for line, expected in zip(lines, usual, strict=True):
        (drawn,) = sample([line], 0.01, [1], 100)
        if len(drawn) > len(expected):
            (found,) = sample([line], 0.01, [1], len(drawn) - 1)
            assert found.tolist() == expected.tolist()
            longer += 1
    assert longer


def test_texts_come_back(system):
    vocabulary = system.vocabularies.target
    lines = vocabulary.decode(vocabulary.encode(tf.constant(EXPECTED["targets"][:12]))).numpy()
    assert [line.decode() for line in lines] == EXPECTED["targets"][:12]


def test_costs_are_those_of_transformers(system):
    """In nats, and the padding's logit counts."""
    pairs = list(zip(SOURCES, (line.encode() for line in EXPECTED["targets"]), strict=True))
    costs = Scorer(
        system.vocabularies, system.model, DecodingOptions(normalization_alpha=0.0)
    ).scores_of(pairs)
    np.testing.assert_allclose(costs, EXPECTED["costs"], rtol=1e-5)


def test_greedy_translations_are_those_of_transformers(system):
    translator = system.translator(DecodingOptions(beam_size=1, **LIMITS))
    assert best(translator, SOURCES) == EXPECTED["greedy"]


def test_beams_are_those_of_transformers_or_better(system):
    """Ours goes on where an open hypothesis may still win."""
    found = best(system.translator(BEAM), SOURCES)
    different = [i for i, line in enumerate(found) if line != EXPECTED["beams"][i]]
    assert len(different) <= 1
    scorer = Scorer(system.vocabularies, system.model, DecodingOptions())
    for i in different:
        ours, theirs = scorer.scores_of(
            [(SOURCES[i], line.encode()) for line in (found[i], EXPECTED["beams"][i])]
        )
        assert ours < theirs


def test_weights_of_half_precision_are_read(system, folder, tmp_path):
    halves = {
        name: array.astype(np.float16)
        for name, array in load_file(folder / "model.safetensors").items()
    }
    save_file(halves, folder / "model.safetensors")
    run("import-marian", folder, "--to", tmp_path / "model")
    for found, expected in zip(
        load_system(tmp_path / "model").model.variables, system.model.variables, strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=2e-3)


@pytest.mark.parametrize(
    ("front", "option", "licence"),
    [
        ("---\nlanguage: en\nlicense: apache-2.0\n---\n", [], "apache-2.0"),
        ("---\nlicense: 'cc-by-4.0'\n---\n", ["--licence", "MIT"], "cc-by-4.0"),
        ("---\nlicense: a\x1b[31m\u202eb\n---\n", [], "a[31mb"),
        ("license: text\n", ["--licence", "MIT"], "MIT"),
        ("", [], "not stated"),
    ],
)
def test_the_licence_is_kept(folder, tmp_path, front, option, licence):
    (folder / "README.md").write_text(front)
    run("import-marian", folder, "--to", tmp_path / "model", *option)
    origin = json.loads((tmp_path / "model" / "origin.json").read_text())
    assert (origin["licence"], origin["folder"]) == (licence, "folder")


@pytest.mark.slow
def test_a_saved_model_translates_alike(imported, system, tmp_path):
    run(
        "export",
        "--model",
        imported,
        "--to",
        tmp_path / "export",
        "-k",
        "4",
        "--translation_maxlen",
        "31",
    )
    found = tf.saved_model.load(str(tmp_path / "export")).signatures["serving_default"](
        tf.constant(SOURCES)
    )
    expected = best(system.translator(BEAM), SOURCES)
    assert [line.decode() for line in found["translations"].numpy()] == expected
    card = json.loads((tmp_path / "export" / "assets.extra" / "model.json").read_text())
    assert card["models"][0]["origin"]["licence"] == "not stated"


@pytest.mark.slow
def test_ctranslate2_begins_with_zeros_alone(folder, tmp_path, capsys):
    pytest.importorskip("ctranslate2", reason="needs the extra `ctranslate2`")
    arrays(lambda found: found["model.shared.weight"].__setitem__(-1, 1.0))(folder)
    run("import-marian", folder, "--to", tmp_path / "model")
    with pytest.raises(SystemExit, match="2"):
        run(
            "export",
            "--model",
            tmp_path / "model",
            "--to",
            tmp_path / "export",
            "--format",
            "ctranslate2",
        )
    assert "begins with an embedding of zeros" in capsys.readouterr().err


def test_nematus_lacks_the_parts(imported, tmp_path, capsys):
    with pytest.raises(SystemExit, match="2"):
        run("export-nematus", imported, "--to", tmp_path / "nematus")
    said = capsys.readouterr().err
    for part in (
        "activation swish",
        "attention_bias",
        "output_bias",
        "positions paper",
        "padding",
    ):
        assert part in said


@pytest.mark.slow
def test_fine_tuning_goes_on_with_the_model(imported, tmp_path, system):
    """Padding keeps its zeros, and the new directory the licence, an average of it too."""
    for name, lines in (("en", EXPECTED["sources"]), ("de", EXPECTED["targets"])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = []
    for kind in ("", "valid_"):
        files += [f"--{kind}source_dataset", tmp_path / "en"]
        files += [f"--{kind}target_dataset", tmp_path / "de"]
    options = [
        "--finish_after",
        2,
        "--valid_freq",
        2,
        "--learning_rate",
        0.01,
        "--translation_maxlen",
        31,
    ]
    run(
        "train",
        "-m",
        tmp_path / "tuned",
        "--config",
        imported / "config.json",
        "--reload",
        imported,
        *files,
        *options,
    )
    with np.load(tmp_path / "tuned" / "last.npz") as checkpoint:
        table = checkpoint["encoder/embedding/embeddings"]
    assert not table[-1].any()
    difference = np.abs(table - system.model.encoder.embedding.table)[:-1]
    assert 0 < difference.max() < 0.03  # two updates of Adam
    shutil.copytree(tmp_path / "tuned", tmp_path / "own")
    (tmp_path / "own" / "origin.json").unlink()
    run("average", "--model", tmp_path / "own", imported, "--to", tmp_path / "both")
    for name in ("tuned", "both"):
        assert json.loads((tmp_path / name / "origin.json").read_text())["licence"] == "not stated"


def other_system(system, directory, **options):
    config = dataclasses.replace(system.config, **options)
    return build_system(config, tuple(map(Path, config.dictionaries)))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "layernorm"])
def test_another_normalization_takes_the_gains(imported, system, kind):
    changed = other_system(system, imported, layer_normalization_type=kind)
    (said,) = reload_weights(changed, imported)
    assert f"its layernorm becomes {kind}" in said
    former = {each.path: each for each in system.model.variables}
    for variable in changed.model.variables:
        path = variable.path.replace("norm/scale", "norm/gamma")
        np.testing.assert_array_equal(variable, former[path])
    gains = 0 if kind == "none" else 8
    assert f"{16 - gains} weights" in said
    assert len(changed.model.variables) == len(former) - 16 + gains


def test_an_option_decides_on_offsets(imported, system):
    """The weights that are left follow from the other model; new offsets are zero."""
    former = {each.path: each.numpy() for each in system.model.variables}
    without = other_system(system, imported, layer_normalization_center=False)
    (said,) = reload_weights(without, imported)
    assert "without offsets: 8 weights" in said
    paths = {each.path for each in without.model.variables}
    assert former.keys() - paths == {path for path in former if path.endswith("norm/beta")}
    for variable in without.model.variables:
        np.testing.assert_array_equal(variable, former[variable.path])
    with_offsets = other_system(system, imported, layer_normalization_center=True)
    assert [each.path for each in with_offsets.model.variables] == list(former)


def test_other_vocabularies_keep_the_words_that_both_have(imported, system, tmp_path):
    text = tmp_path / "text"
    text.write_text("a cat dog\nhen fox é\nzebra zoo\n" * 9, encoding="utf-8")
    model = train_sentencepiece(text, 20, kind="unigram")
    (tmp_path / "new.model").write_bytes(model)
    options = {"dictionaries": (str(tmp_path / "new.model"),) * 2, "reload": str(imported)}
    with pytest.raises(UserError, match="another source vocabulary"):
        reload_weights(other_system(system, imported, **options), imported)
    changed = other_system(system, imported, reload_other_vocabularies=True, **options)
    before = changed.model.encoder.embedding.table.numpy()
    said = reload_weights(changed, imported)
    words = changed.vocabularies.source.words
    former = system.vocabularies.source.words
    kept = [word for word in words if word in former]
    assert f"the vectors of {len(kept)} of 20 source words are kept" in said[0]
    assert {"c", "</s>", "<unk>"} < set(kept) < set(words)
    after = changed.model.encoder.embedding.table.numpy()
    old = system.model.encoder.embedding.table.numpy()
    for i, word in enumerate(words):
        np.testing.assert_array_equal(
            after[i], old[former.index(word)] if word in former else before[i]
        )
    np.testing.assert_array_equal(after[20], old[48])  # padding
    kernel = "encoder/layer_1/feed_forward/inner_kernel"
    values = {each.path: each for each in changed.model.variables}
    expected = {each.path: each for each in system.model.variables}
    np.testing.assert_array_equal(values[kernel], expected[kernel])
