"""Multi30k without a network."""

import keras
import pytest

from nmt.errors import UserError
from nmt.text.corpora.multi30k import write_multi30k


def test_a_failed_download_names_the_files_and_where_to_put_them(tmp_path, monkeypatch):
    def fail(*args, cache_dir, **kwargs):
        raise Exception(
            "URL fetch failure" if cache_dir.is_dir() else "Keras would download to another folder"
        )

    to = tmp_path / "new"

    monkeypatch.setattr(keras.utils, "get_file", fail)
    with pytest.raises(UserError) as caught:
        write_multi30k(to)
    message = str(caught.value)
    assert "train.en.gz cannot be downloaded" in message
    assert f" into {to / 'download'}" in message
    assert not list(to.iterdir())
