import gzip
from pathlib import Path

import pytest

from experiments.corpus import FOLDER, prepare, read_corpus
from experiments.place import Place
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


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.json")))
def test_a_declared_corpus_is_one_that_nmt_can_be_trained_on(name, tmp_path):
    corpus = read_corpus(name if name != "wmt14" else str(tmp_path))
    options = corpus.training(tmp_path)
    assert make_config(options).finish_after == options["finish_after"]
    assert options["valid_target_dataset"] == str(tmp_path / "text" / f"{corpus.valid}.de")


def test_the_papers_scale_is_that_of_a_folder(tmp_path):
    options = read_corpus(str(tmp_path)).options
    assert [options[name] for name in ("embedding_size", "state_size", "batch_size", "maxlen")] == [512, 1024, 80, 80]


def test_what_is_neither_is_refused():
    with pytest.raises(UserError, match="DATA=nothing is no folder and none of demo, multi30k; give"):
        read_corpus("nothing")
    with pytest.raises(UserError, match="give its folder: DATA=/path/to/wmt14"):
        read_corpus("wmt14")


def test_missing_files_are_named(folder, tmp_path):
    (folder / "newstest2014.en").unlink()
    (folder / "train.de.gz").unlink()
    with pytest.raises(UserError, match=r"lacks train.de, newstest2014.en, as they are or with .gz; put them there"):
        prepare(read_corpus(str(folder)), Place(tmp_path / "work", tmp_path / "logs"))
    assert not (tmp_path / "work").exists()


def test_files_are_taken_compressed_or_not(folder, tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr("experiments.corpus.execute", lambda place, *arguments: ran.append(arguments))
    place = Place(tmp_path / "work", tmp_path / "logs")
    corpus = read_corpus(str(folder))
    prepare(corpus, place)
    for part in PARTS:
        source, target = (Path(path).read_text() for path in corpus.files(part, place.work))
        assert (source, target) == (f"{part} one\n" * 40, f"{part} eins\n" * 40)
    assert [arguments[:3] for arguments in ran] == [("-m", "nmt", "vocab")]
