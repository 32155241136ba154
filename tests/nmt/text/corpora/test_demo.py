"""The demo corpus: its exact content, and properties of its sentences."""

import hashlib

from nmt.text.corpora.demo import write_demo


def test_the_demo_corpus_never_changes(tmp_path):
    """A digest of all its files: a release of num2words that spells a number differently fails
    here.
    """
    write_demo(tmp_path / "corpus")
    names = sorted(path.name for path in (tmp_path / "corpus").iterdir())
    assert names == ["dev.de", "dev.en", "test.de", "test.en", "train.de", "train.en"]
    content = b"".join((tmp_path / "corpus" / name).read_bytes() for name in names)
    digest = "51042e70afe74878dce5f204c4b66d53852f87f0a259ebb1b7092fa0a83a08b0"
    assert hashlib.sha256(content).hexdigest() == digest


def test_parts_share_no_sentence_and_numbers_are_spelled_out(tmp_path):
    write_demo(tmp_path)
    for language in ("en", "de"):
        lines = []
        for part, size in (("train", 8000), ("dev", 200), ("test", 200)):
            found = (tmp_path / f"{part}.{language}").read_text("utf-8").splitlines()
            assert len(found) == size
            lines += found
        for line in lines:
            assert line[0].isupper() and line.endswith(".")
            assert not any(character.isdigit() for character in line)
        assert language == "de" or len(set(lines)) == 8400
