import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.translation import corpus as corpora
from experiments.translation.baseline import Store
from experiments.translation.condition import Condition
from experiments.translation.corpus import FOLDER, prepare, read_corpus
from experiments.translation.schedule import read_conditions
from nmt.config import make_config
from nmt.errors import UserError

PARTS = ("train", "newstest2013", "newstest2014", "newstest2017")


@pytest.fixture
def folder(tmp_path):
    """The user's text: plain on the source side, compressed on the target side."""
    origin = tmp_path / "wmt"
    origin.mkdir()
    for part in PARTS:
        (origin / f"{part}.en").write_text(f"{part} one\n" * 40)
        with gzip.open(origin / f"{part}.de.gz", "wt") as file:
            file.write(f"{part} eins\n" * 40)
    return origin


@pytest.fixture
def declared(tmp_path, monkeypatch):
    """Declares a corpus like multi30k with the given changes."""
    monkeypatch.setattr(corpora, "FOLDER", tmp_path / "corpora")
    (tmp_path / "corpora").mkdir()

    def declare(name, **given):
        found = json.loads((FOLDER / "multi30k.json").read_text())
        (tmp_path / "corpora" / f"{name}.json").write_text(json.dumps({**found, **given}))

    return declare


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_nmt_can_be_trained_on_every_declared_corpus(name, tmp_path, folder):
    corpus = read_corpus(name if name != "wmt14" else str(folder))
    for condition in corpus.select(read_conditions()):
        options = {**corpus.training(tmp_path), **condition.options}
        assert make_config(options).finish_after == options["finish_after"]
    assert corpus.files(corpus.valid, tmp_path)[1] == str(tmp_path / "text" / f"{corpus.valid}.de")


def test_a_folder_without_a_declaration_has_the_papers_scale(folder):
    options = read_corpus(str(folder)).options
    assert [options[name] for name in ("embedding_size", "state_size", "batch_size", "maxlen")] == [
        512,
        1024,
        80,
        80,
    ]


def test_a_folder_has_the_declaration_of_its_name(folder, declared):
    declared("wmt", corpus=None, train="newstest2013", valid="newstest2014", tests={"web": "train"})
    corpus = read_corpus(str(folder))
    assert (corpus.name, corpus.origin, corpus.tests) == ("wmt", folder, {"web": "train"})
    with pytest.raises(UserError, match="give its folder: DATA=/path/to/wmt"):
        read_corpus("wmt")


def test_a_corpus_trains_the_rows_of_its_architecture_that_it_does_not_leave_out(declared):
    conditions = [Condition(name, "", kind="none") for name in ("one", "one-more", "two")]
    declared("mine", without=["*-more"])
    assert [condition.name for condition in read_corpus("mine").select(conditions)] == [
        "one",
        "two",
    ]
    transformer = Condition("three", "", kind="none", model_type="transformer")
    assert [
        condition.name for condition in read_corpus("mine").select([*conditions, transformer])
    ] == ["one", "two"]
    options = {**read_corpus("mine").options, "model_type": "transformer"}
    declared("theirs", options=options)
    assert read_corpus("theirs").select([*conditions, transformer]) == [transformer]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sedes": 3}, "is not the declaration of a corpus: .*sedes.*; compare it"),
        ({"options": {}}, "is not the declaration of a corpus: options lack batch_size"),
    ],
)
def test_a_wrong_declaration_is_refused(declared, given, said):
    declared("mine", **given)
    with pytest.raises(UserError, match=rf"mine.json {said}"):
        read_corpus("mine")


@pytest.mark.parametrize("data", ["nothing", "./demo", "", "/"])
def test_data_that_is_neither_a_name_nor_a_folder_is_refused(data, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=f"DATA={data} is .* not one of demo, multi30k"):
        read_corpus(data)


def test_missing_files_are_named(folder):
    (folder / "newstest2014.en").unlink()
    (folder / "train.de.gz").unlink()
    with pytest.raises(UserError, match=r"lacks train.de, newstest2014.en"):
        read_corpus(str(folder))


def test_compressed_and_plain_files_are_copied(folder, tmp_path, ran):
    store = Store("wmt", tmp_path)
    corpus = read_corpus(str(folder))
    for _ in range(2):
        prepare(corpus, store)
    assert (store.work / "text" / "done").exists()
    for part in PARTS:
        source, target = (Path(path).read_text() for path in corpus.files(part, store.work))
        assert (source, target) == (f"{part} one\n" * 40, f"{part} eins\n" * 40)
    assert [arguments[:3] for arguments in ran] == [("-m", "nmt", "vocab")]


def test_sides_of_different_length_are_refused(folder, tmp_path, ran):
    (folder / "train.en").write_text("one\n" * 39)
    store = Store("wmt", tmp_path)
    corpus = read_corpus(str(folder))
    for _ in range(2):
        with pytest.raises(UserError, match=r"39 lines and .*train.de has 40"):
            prepare(corpus, store)
    assert not (store.work / "text" / "done").exists()


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-10], lambda data: data[:10] + b"\xff" * 9 + data[19:]]
)
def test_a_damaged_file_is_refused(damage, folder, tmp_path):
    path = folder / "train.de.gz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(UserError, match=rf"{path} cannot be copied to .*: "):
        prepare(read_corpus(str(folder)), Store("wmt", tmp_path))


def test_another_folder_of_the_same_name_is_refused(folder, tmp_path, ran):
    store = Store("wmt", tmp_path)
    prepare(read_corpus(str(folder)), store)
    other = tmp_path / "elsewhere" / "wmt"
    other.parent.mkdir()
    folder.rename(other)
    with pytest.raises(
        UserError, match=f"origin was '{folder}' and is now '{other}'; move .* away, or restore"
    ):
        prepare(read_corpus(str(other)), store)


@pytest.mark.parametrize("tied", [True, False])
def test_one_embedding_for_both_sides_has_one_vocabulary(corpus, store, ran, tied):
    prepare(
        replace(corpus, options={**corpus.options, "tie_encoder_decoder_embeddings": tied}), store
    )
    (vocab,) = [each for each in ran if "vocab" in each]
    assert ("--joint" in vocab) == tied


def test_a_row_may_name_the_only_corpora_that_it_is_trained_on(corpus):
    mine, other = (Condition(name, "", kind="none", corpora=(name,)) for name in ("tiny", "other"))
    assert replace(corpus, without=["*"]).select(
        [mine, other, Condition("none", "", kind="none")]
    ) == [mine]
