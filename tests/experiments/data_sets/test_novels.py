import gzip

import pytest

from experiments.data_sets.novels import hold_out, read_novels, split_sentences
from nmt.errors import UserError


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("He came. She went!", ["He came .", "She went !"]),
        (
            "Mrs. Bates spoke to Mr. Elton. He left.",
            ["Mrs . Bates spoke to Mr . Elton .", "He left ."],
        ),
        ("“Well!” said she. “No.” He sat.", ["“ Well ! ” said she .", "“ No . ”", "He sat ."]),
        ("Emma's _own_\r\nbook, no. 3.", ["Emma 's own book , no . 3 ."]),
        ("  \r\n", []),
    ],
)
def test_sentences_end_at_full_stops_before_capital_letters(text, sentences):
    assert [" ".join(words) for words in split_sentences(text)] == sentences


def test_plain_and_compressed_novels_are_read_by_name(tmp_path):
    (tmp_path / "Austen_Emma.txt").write_text("One. Two.")
    (tmp_path / "Eliot_Mill.txt.gz").write_bytes(gzip.compress(b"Three."))
    (tmp_path / "overview.csv").write_text("no novel")
    assert read_novels(str(tmp_path)) == {
        "Austen_Emma": [["One", "."], ["Two", "."]],
        "Eliot_Mill": [["Three", "."]],
    }


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "has no novels; give a folder of texts in English"),
        ("a.txt.gz", b"no gzip", "a.txt.gz cannot be read"),
        ("a.txt", b"\xff", "a.txt cannot be read"),
    ],
)
def test_a_wrong_folder_is_one_line(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=said):
        read_novels(str(tmp_path))


def test_each_part_that_is_held_out_has_its_share():
    novels = {f"short {number}": [number] * 12 for number in range(20)} | {"long": [-1] * 200}
    train, *parts = hold_out(novels, 0.08, parts=2)
    assert sorted([*train, *parts[0], *parts[1]]) == sorted(novels.values())
    for part in parts:
        *others, _ = part  # without the last one, it is too small
        assert sum(map(len, others)) < 0.08 * 440 <= sum(map(len, part))
    assert hold_out(novels, 0.08, parts=2) == [train, *parts]


def test_parts_without_a_novel_are_empty():
    assert hold_out({"only": ["word"]}, 0.1, parts=2) == [[], [["word"]], []]
