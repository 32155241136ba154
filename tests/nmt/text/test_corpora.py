"""The corpora: German as it is spoken, parts that share nothing, downloads that are checked."""

import keras
import pytest

from nmt.errors import UserError
from nmt.text import corpora


@pytest.mark.parametrize(
    ("n", "english", "german"),
    [
        (0, "zero", "null"),
        (1, "one", "eins"),
        (16, "sixteen", "sechzehn"),
        (21, "twenty-one", "einundzwanzig"),
        (30, "thirty", "dreißig"),
        (67, "sixty-seven", "siebenundsechzig"),
        (100, "one hundred", "einhundert"),
        (101, "one hundred and one", "einhunderteins"),
        (745, "seven hundred and forty-five", "siebenhundertfünfundvierzig"),
        (1001, "one thousand and one", "eintausendeins"),
        (1984, "one thousand nine hundred and eighty-four", "eintausendneunhundertvierundachtzig"),
        (9000, "nine thousand", "neuntausend"),
    ],
)
def test_numbers(n, english, german):
    assert corpora._number(n) == (english, german)


@pytest.mark.parametrize(
    ("n", "english", "german"),
    [
        (1, "first", "ersten"),
        (3, "third", "dritten"),
        (7, "seventh", "siebten"),
        (8, "eighth", "achten"),
        (12, "twelfth", "zwölften"),
        (19, "nineteenth", "neunzehnten"),
        (20, "twentieth", "zwanzigsten"),
        (21, "twenty-first", "einundzwanzigsten"),
        (28, "twenty-eighth", "achtundzwanzigsten"),
    ],
)
def test_ordinals(n, english, german):
    assert corpora._ordinal(n) == (english, german)


def test_the_demo_corpus_is_the_same_every_time_and_its_parts_share_no_sentence(tmp_path):
    for name in ("one", "two"):
        corpora.write_demo(tmp_path / name)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two
    parts = {name: one[f"{name}.en"].decode().splitlines() for name in ("train", "dev", "test")}
    assert {name: len(lines) for name, lines in parts.items()} == {"train": 8000, "dev": 200, "test": 200}
    assert len({line for lines in parts.values() for line in lines}) == 8400
    german = one["train.de"].decode()
    assert len(german.splitlines()) == 8000
    assert "um halb acht" in german
    for english, translation in zip(parts["train"], german.splitlines(), strict=True):
        assert english.endswith(".") and translation.endswith(".")
        assert translation[0].isupper()


def test_without_a_network_multi30k_says_what_to_put_where(tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise Exception("URL fetch failure")

    monkeypatch.setattr(keras.utils, "get_file", fail)
    with pytest.raises(UserError) as caught:
        corpora.write_multi30k(tmp_path)
    message = str(caught.value)
    assert str(tmp_path / "download") in message
    for name in ("train.en.gz", "train.de.gz", "val.en.gz", "val.de.gz", "test_2016_flickr.de.gz"):
        assert name in message
    assert not list(tmp_path.iterdir())
