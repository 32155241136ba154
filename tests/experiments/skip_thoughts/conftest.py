"""A few novels."""

import pytest

from experiments.skip_thoughts.data import read_corpus
from tests.experiments.data_sets.novels import write_novel


@pytest.fixture
def data(tmp_path):
    """A folder of novels."""
    folder = tmp_path / "novels"
    folder.mkdir()
    for number in range(4):
        write_novel(folder / f"Novel_{number}.txt.gz", number)
    return folder


@pytest.fixture
def corpus(data):
    return read_corpus(str(data))
