"""Small models, vocabularies and corpora."""

import json

import pytest

from nmt.normalization import KINDS
from nmt.rnnsearch import Rates, RNNSearch
from nmt.vocab import load_vocabulary

WORDS = ["a", "b", "c", "d"]


@pytest.fixture(params=KINDS)
def kind(request):
    """Every kind of normalization that this tree has."""
    return request.param


@pytest.fixture
def make_model():
    """Makes a small model; its two vocabularies have 6 words unless said."""

    def make(kind="layernorm", rates=None, words=(6, 6), **options):
        sizes = {"embedding_size": 5, "state_size": 7}
        return RNNSearch(*words, normalization=kind, rates=rates or Rates(), **sizes, **options)

    return make


@pytest.fixture
def dictionary(tmp_path):
    """Path of a Nematus dictionary: end, unknown and `WORDS`."""
    path = tmp_path / "words.json"
    path.write_text(json.dumps({word: i for i, word in enumerate(["eos", "UNK", *WORDS])}))
    return path


@pytest.fixture
def vocabulary(dictionary):
    return load_vocabulary(dictionary)


@pytest.fixture
def write_lines(tmp_path):
    """Writes a text file, one line each, and returns its path."""

    def write(name, lines):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write
