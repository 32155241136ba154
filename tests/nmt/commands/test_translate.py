"""`python -m nmt translate` and `score`: the files that they read and write, and what they say
of lines."""

import gzip
import re
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest
from backports import zstd

from tests.nmt.outcomes import refused

GOLDEN = Path(__file__).parents[2] / "data" / "golden" / "models"
TEXT = b"a b\n\nc d\n"


@pytest.mark.parametrize(
    ("ending", "pack", "unpack"),
    [
        (".gz", gzip.compress, gzip.decompress),
        pytest.param(".zst", zstd.compress, zstd.decompress, marks=pytest.mark.slow),
    ],
)
def test_compressed_files_are_read_and_written_as_plain_ones(
    run, trained, tmp_path, ending, pack, unpack
):
    (tmp_path / "text").write_bytes(TEXT)
    (tmp_path / f"text{ending}").write_bytes(pack(TEXT))
    for command in (("translate", "-i"), ("score", "-t", "text", "-s")):
        plain, packed = (run(*command, name, "-m", "model") for name in ("text", f"text{ending}"))
        assert plain[:2] == packed[:2]
        assert (plain[0], plain[1].count("\n")) == (0, 3)
        for name in ("out", "again"):
            assert run(*command, "text", "-m", "model", "-o", f"{name}{ending}")[:2] == (0, "")
        first, second = ((tmp_path / f"{name}{ending}").read_bytes() for name in ("out", "again"))
        assert first == second  # without names and times
        assert unpack(first).decode() == plain[1]


def test_a_file_that_is_not_text_is_refused(run, trained, tmp_path):
    (tmp_path / "data").write_bytes(gzip.compress(TEXT * 100) * 20)
    (tmp_path / "old").write_text("old")
    for command in (("translate", "-i", "data"), ("score", "-s", "data", "-t", "data")):
        status, output, said = run(*command, "-m", "model", "-o", "old")
        assert (status, output, said.count("\n")) == (2, "", 1)
        assert said.startswith("nmt: data is not text: ")
    assert (tmp_path / "old").read_text() == "old"


def test_a_pattern_that_matches_several_files_is_not_scored(run, trained, tmp_path):
    for name in ("test-1.en", "test-2.en", "test.de"):
        (tmp_path / name).write_text("a b\n")
    assert "nmt: test-*.en matches 2 files, " in refused(
        run("score", "-m", "model", "-s", "test-*.en", "-t", "test.de")
    )
    assert run("score", "-m", "model", "-s", "test-1*.en", "-t", "test.de")[0] == 0


def test_texts_of_different_lengths_are_not_scored(run, trained, tmp_path):
    (tmp_path / "text").write_bytes(TEXT)
    (tmp_path / "other.gz").write_bytes(gzip.compress(TEXT + b"a\n"))
    assert "text has 3 lines and other.gz has 4" in refused(
        run("score", "-m", "model", "-s", "text", "-t", "other.gz")
    )


def test_lines_of_unknown_words_are_named(run, trained, tmp_path):
    (tmp_path / "text").write_text("a b\nüber a\n\na b über\nüber über\n", "utf-8")
    status, output, said = run("translate", "-m", "model", "-i", "text")
    assert (status, output.count("\n")) == (0, 5)
    assert "warning: 2 lines (2, 5): at least " in said


def test_an_export_is_no_model_to_translate_with(run, tmp_path):
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "saved_model.pb").touch()
    assert "nmt: export is an export; " in refused(run("translate", "-m", "export"))


def test_an_input_is_not_overwritten(run, trained, tmp_path, monkeypatch):
    (tmp_path / "text").write_bytes(TEXT)
    (tmp_path / "link").symlink_to("text")
    for command in (("translate", "-i", "text"), ("score", "-s", "text", "-t", "text")):
        for name in ("text", "link"):
            assert f"nmt: {name} is read" in refused(run(*command, "-m", "model", "-o", name))
    with (tmp_path / "text").open() as text:
        monkeypatch.setattr("sys.stdin", text)
        assert "text is read" in run("translate", "-m", "model", "-o", "text")[2]
        assert run("translate", "-m", "model", "-i", "text", "-o", "other")[0] == 0
    assert (tmp_path / "text").read_bytes() == TEXT


def test_an_output_keeps_its_permissions(run, trained, tmp_path):
    (tmp_path / "text").write_bytes(TEXT)
    (tmp_path / "out").touch(0o600)
    assert run("translate", "-m", "model", "-i", "text", "-o", "out")[0] == 0
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o600
    assert (tmp_path / "out").read_bytes().count(b"\n") == 3


@pytest.mark.slow
def test_translations_that_are_cut_are_counted_and_named(run, write_lines):
    lines = (GOLDEN / "test.en").read_text("utf-8").splitlines()
    text = write_lines("text", [lines[0], "", lines[0]])
    status, output, said = run(
        "translate", "-m", GOLDEN / "layernorm", "-i", text, "-k", 1, "--translation_maxlen", 1
    )
    assert (status, output.count("\n")) == (0, 3)
    assert "2 lines (1, 3): a translation was" in said
    status, _, said = run("translate", "-m", GOLDEN / "layernorm", "-i", text, "-k", 1)
    assert (status, "cut" in said) == (0, False)


def test_constraints_hold_and_a_line_without_a_translation_is_named(run, trained, tmp_path):
    """The vocabulary has four words besides the unknown one."""
    (tmp_path / "text").write_bytes(TEXT)
    words = ("translate", "-m", "model", "-i", "text", "--suppress_unknown", "--no_repeat_ngram", 1)
    status, output, said = run(*words, "--min_length", 4, "--n_best")
    assert (status, "warning" in said) == (0, False)
    beam = [line.split(" ||| ") for line in output.splitlines()]
    assert all(sorted(text.split()) == list("abcd") for number, text, _ in beam if number != "1")
    assert [line for line in beam if line[0] == "1"] == [
        ["1", "", "0.000000"]
    ]  # an empty line stays empty
    status, output, said = run(*words, "--min_length", 5)
    assert (status, output) == (0, "\n\n\n")
    allowed = "that --min_length, --suppress_unknown, --no_repeat_ngram allow"
    assert "warning: 2 lines (1, 3): no " in said and allowed in said


@pytest.mark.slow
def test_a_model_whose_weights_overflow_is_named(run, tmp_path):
    shutil.copytree(GOLDEN / "layernorm", tmp_path / "large")
    with np.load(tmp_path / "large" / "best.npz") as file:
        weights = {name: file[name] for name in file.files}
    large = {
        name: value if name == "state" else value * np.float32(1e20)
        for name, value in weights.items()
    }
    np.savez(tmp_path / "large" / "best.npz", **large)
    status, _, said = run("translate", "-m", "large", "-i", GOLDEN / "test.en")
    assert status == 0
    assert "as costs are infinite" in said
    status, output, said = run(
        "score", "-m", "large", "-s", GOLDEN / "test.en", "-t", GOLDEN / "test.en"
    )
    count = output.count("\n")
    assert (status, output) == (0, "nan\n" * count)
    assert re.search(rf"warning: {count} lines \(.*\): the weights overflow", said)


def test_translations_begin_with_the_lines_of_a_file(run, trained, tmp_path):
    (tmp_path / "text").write_bytes(TEXT)
    (tmp_path / "begin.gz").write_bytes(gzip.compress(b"d c\n\nb\n"))
    words = ("translate", "-m", "model", "-i", "text", "-b", 1, "-o", "out", "--target_prefix")
    assert run(*words, "begin.gz")[0] == 0
    first, second, third = (tmp_path / "out").read_text().splitlines()
    assert (first[:3], second, third[0]) == ("d c", "", "b")
    before = (tmp_path / "out").read_text()
    for text, message in (
        ("a\n\n", "begin has 2 lines and the input has 3"),
        ("a\n\n\n\n", "begin has 4 lines and the input has 3"),
    ):
        (tmp_path / "begin").write_text(text)
        status, output, said = run(*words, "begin")
        assert (status, output, said.count("\n"), message in said) == (2, "", 1, True), said
    assert (tmp_path / "out").read_text() == before
    assert "--target_prefix missing is no" in refused(run(*words, "missing"))
    (tmp_path / "begin").write_text("\n\n" + "a b " * 3)
    status, _, said = run(*words, "begin", "--translation_maxlen", 5)
    assert (status, "line 3: a translation was cut" in said) == (0, True)
    assert (tmp_path / "out").read_text().splitlines()[2] == "a b a b a"


def test_a_stream_with_more_or_fewer_lines_than_prefixes_is_refused(
    run, trained, tmp_path, monkeypatch
):
    (tmp_path / "text").write_bytes(TEXT)
    for begin, message in (
        ("a\n\n", "begin has 2 lines and the input has more"),
        ("a\n\n\n\n", "begin has more lines and the input has 3"),
    ):
        (tmp_path / "begin").write_text(begin)
        with (tmp_path / "text").open() as text:
            monkeypatch.setattr("sys.stdin", text)
            status, _, said = run(
                "translate", "-m", "model", "-o", "out", "--target_prefix", "begin"
            )
        assert (status, message in said, (tmp_path / "out").exists()) == (2, True, False), said


def test_two_outputs_in_one_file_are_refused(run, tmp_path):
    (tmp_path / "link").symlink_to("out")
    for name in ("out", "link", "folder/../out"):
        assert "name the same file" in refused(
            run("translate", "-m", "model", "-o", "out", "--alignments", name)
        )
