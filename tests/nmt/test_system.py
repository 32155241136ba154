"""The digests of files that are compared when a training is resumed."""

import gzip
from types import SimpleNamespace

import pytest

from nmt.config import FILES
from nmt.config_rules import PER_FILE
from nmt.errors import UserError
from nmt.storage.cache import open_cache
from nmt.system import file_digests

OF_CORPORA = {**PER_FILE, "valid_sample": "valid_source_dataset"}


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Options that name existing files."""
    monkeypatch.setenv("NMT_TEXT_CACHE", "off")
    (tmp_path / "text").write_text("one\n")
    return SimpleNamespace(
        **{name: (str(tmp_path / "text"),) for name in FILES}, **dict.fromkeys(OF_CORPORA)
    )


@pytest.mark.parametrize(("option", "text"), OF_CORPORA.items())
def test_with_an_option_of_each_corpus_its_number_of_files_counts(config, tmp_path, option, text):
    path = str(tmp_path / "text")
    setattr(config, text, (f"{path}*", path))
    assert set(file_digests(config, open_cache())) == set(FILES)
    setattr(config, option, 3)
    (tmp_path / "text-2").write_text("two\n")
    found = file_digests(config, open_cache())
    setattr(config, text, (path, f"{path}-2", path))
    changed = file_digests(config, open_cache())
    assert [value for name, value in found.items() if name not in FILES] == [[2, 1]]
    assert [value for name, value in changed.items() if name not in FILES] == [[1, 1, 1]]
    assert changed[text] == found[text]


def test_only_missing_files_are_left_out(config, tmp_path):
    config.source_dataset = (str(tmp_path / "none"),)
    config.target_dataset = (str(tmp_path / "none-*"),)
    assert set(file_digests(config, open_cache())) == set(FILES) - {
        "source_dataset",
        "target_dataset",
    }
    (tmp_path / "damaged.gz").write_bytes(gzip.compress(b"one\n")[:-4])
    config.source_dataset = (str(tmp_path / "damaged.gz"),)
    with pytest.raises(UserError, match=r"damaged\.gz is damaged"):
        file_digests(config, open_cache())
