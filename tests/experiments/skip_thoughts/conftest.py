"""A few novels and tests of sentence vectors."""

import gzip

import numpy as np
import pytest

from experiments.skip_thoughts.data import read_corpus
from experiments.skip_thoughts.transfer import CLASSES, SICK, read_tests
from tests.experiments.data_sets.novels import NAMES, write_novel


@pytest.fixture
def data(tmp_path):
    """A folder with `novels` and `tests`."""
    (tmp_path / "novels").mkdir()
    (tmp_path / "tests").mkdir()
    for number in range(4):
        write_novel(tmp_path / "novels" / f"Novel_{number}.txt.gz", number)
    generator = np.random.default_rng(0)
    head = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    for name in SICK.values():
        scores = generator.integers(1, 6, 30)
        lines = "".join(
            f"{i}\t{NAMES[i % 5]} saw the day\t{NAMES[i % 3]} met\t{score}\tNEUTRAL\n" for i, score in enumerate(scores)
        )
        (tmp_path / "tests" / f"{name}.txt.gz").write_bytes(gzip.compress((head + lines).encode()))
    for name in CLASSES.values():
        lines = [f"{i % 2} {'Emma saw' if i % 2 else 'the day'} caf\xe9 {i}" for i in range(30)]
        (tmp_path / "tests" / f"{name}.all").write_bytes("\n".join(lines).encode("latin-1"))
    return tmp_path


@pytest.fixture
def corpus(data):
    return read_corpus(str(data / "novels"))


@pytest.fixture
def tests(data):
    return read_tests(str(data / "tests"))
