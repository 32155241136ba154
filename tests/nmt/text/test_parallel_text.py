"""Parallel text: texts that are refused, and pairs that two texts share."""

import pytest

from nmt.errors import UserError
from nmt.text.parallel_text import ParallelText


@pytest.mark.parametrize(
    ("source", "target", "said"),
    [
        (b"a\n", b"a\nb\n", "has 1 lines and .* has 2"),
        (b"a\nb\n", b"a\nsch\xf6n\n", "target, line 2 is not UTF-8: .* byte 0xf6 in position 3"),
    ],
)
def test_texts_that_cannot_be_trained_on_are_refused(write, source, target, said):
    with pytest.raises(UserError, match=said):
        list(ParallelText(write("source", source), write("target", target)))


def test_a_missing_text_is_refused(tmp_path):
    with pytest.raises(UserError, match="does not exist; give a text file"):
        ParallelText(tmp_path / "none", tmp_path / "none")


def test_every_file_has_a_name_of_its_own(write, tmp_path):
    for folder in "ab":
        (tmp_path / folder).mkdir()
    first, second, other = (str(write(name, b"a\n")) for name in ("a/dev", "b/dev", "a/test"))
    for files, names in {
        (first, other): ["dev", "test"],
        (first, second, other): [first, second, other],
        (first, other, first): [f"{first} (1)", other, f"{first} (3)"],
    }.items():
        assert ParallelText(files, files).names == names
