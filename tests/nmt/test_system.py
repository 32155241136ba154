"""The digests of files that are compared when a training is resumed."""

import gzip
from types import SimpleNamespace

import pytest

from nmt.config import FILES
from nmt.errors import UserError
from nmt.system import file_digests


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Options that name existing files."""
    monkeypatch.setenv("NMT_TEXT_CACHE", "off")
    (tmp_path / "text").write_text("one\n")
    return SimpleNamespace(**{name: (str(tmp_path / "text"),) for name in FILES}, dataset_weights=None)


def test_with_weights_the_files_of_each_corpus_count(config, tmp_path):
    text = str(tmp_path / "text")
    config.source_dataset = (f"{text}*", text)
    assert set(file_digests(config)) == set(FILES)
    config.dataset_weights = (1, 2)
    (tmp_path / "text-2").write_text("two\n")
    found = file_digests(config)
    config.source_dataset = (text, f"{text}-2", text)
    config.dataset_weights = (1, 1, 2)
    changed = file_digests(config)
    assert [value for name, value in found.items() if name not in FILES] == [[2, 1]]
    assert [value for name, value in changed.items() if name not in FILES] == [[1, 1, 1]]
    assert changed["source_dataset"] == found["source_dataset"]


def test_only_missing_files_are_left_out(config, tmp_path):
    config.source_dataset, config.target_dataset = (str(tmp_path / "none"),), (str(tmp_path / "none-*"),)
    assert set(file_digests(config)) == set(FILES) - {"source_dataset", "target_dataset"}
    (tmp_path / "damaged.gz").write_bytes(gzip.compress(b"one\n")[:-4])
    config.source_dataset = (str(tmp_path / "damaged.gz"),)
    with pytest.raises(UserError, match=r"damaged\.gz is damaged"):
        file_digests(config)
