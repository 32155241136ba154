"""Files for the tests of texts."""

import pytest


@pytest.fixture
def write(tmp_path):
    """Writes bytes to a file and returns its path."""

    def write(name, content):
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write
