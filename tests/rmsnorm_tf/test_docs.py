"""The examples in the pages of this package run unchanged."""

import doctest
from pathlib import Path

import pytest

from tests.backends import BACKEND

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.skipif(BACKEND != "tensorflow", reason="the pages show TensorFlow")
@pytest.mark.parametrize("page", ["layer", "from-other-layers", "recurrent", "convert"])
def test_examples(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(DOCS / f"{page}.md"), module_relative=False)
    assert result.attempted > 10
    assert not result.failed
