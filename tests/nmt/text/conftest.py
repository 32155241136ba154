"""Files for the tests of texts."""

import pytest

from nmt.text.parallel_text import ParallelText
from tests.nmt.text.data import training_data


@pytest.fixture
def write(tmp_path):
    """Writes bytes to a file and returns its path."""

    def write(name, content):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write


@pytest.fixture
def make_data(write_lines, vocabulary):
    """Makes training data of source and target lines; the targets default to the sources."""

    def make(sources, targets=None, **options):
        text = ParallelText(
            write_lines("source", sources), write_lines("target", targets or sources)
        )
        return training_data(
            text, vocabulary, **{"batch_size": 2, "maxlen": 30, "seed": 1, **options}
        )

    return make


@pytest.fixture
def corpora(write_lines):
    """Two files of one pair and of two pairs, the last of them with an empty side."""
    small = write_lines("small", ["a"])
    large = write_lines("large", ["b c", ""])
    return ParallelText([small, large], [small, large])
