"""`python -m nmt evaluate`: what it prints, and mistakes in its files."""

import math
import re

import pytest


def test_bleu_and_exact_matches_are_printed(run, tmp_path):
    (tmp_path / "translations").write_text("a b c d\ne f g h\n")
    (tmp_path / "references").write_text("a b c d\ne f g i\n")
    status, output, _ = run("evaluate", "translations", "references")
    assert status == 0
    # Matches 7 of 8 words, 5 of 6 pairs, 3 of 4 triples and 1 of 2 quadruples, at equal length.
    assert output.startswith(f"BLEU {100 * (7 / 8 * 5 / 6 * 3 / 4 * 1 / 2) ** 0.25:.2f} (nrefs:1|case:mixed|")
    assert "exact match 50.0%" in output


def test_several_references_and_another_system(run, tmp_path):
    (tmp_path / "one").write_text("a b c d\n" * 20)
    (tmp_path / "two").write_text("a b c x\n" * 20)
    (tmp_path / "worse").write_text("a b c z\n" * 20)
    status, output, _ = run("evaluate", "one", "two", "one", "--against", "worse")
    assert status == 0
    assert output.startswith("BLEU 100.00 (nrefs:2|")
    differences = dict(re.findall(r"\n(\w+) minus that of worse: ([+-][\d.]+), p = 0\.0", output))
    signs = {name: float(value) > 0 for name, value in differences.items()}
    assert signs == {"BLEU": True, "chrF": True, "TER": False}
    assert differences["TER"] == "-25.00"  # one of four words


@pytest.mark.parametrize(
    ("references", "said"),
    [
        (b"one\n", "the texts have 2, 1 lines; give texts of the same number of lines"),
        (None, "references does not exist; give a text file"),
        (b"a\n\xff\n", "references, line 2 is not UTF-8"),
    ],
)
def test_a_mistake_is_one_line_and_status_2(run, tmp_path, references, said):
    (tmp_path / "translations").write_text("a\nb\n")
    if references:
        (tmp_path / "references").write_bytes(references)
    status, output, error = run("evaluate", "translations", "references")
    assert (status, output, error.count("\n")) == (2, "", 1)
    assert said in error


def test_text_without_spaces_needs_another_tokenizer(run, tmp_path):
    (tmp_path / "one").write_text("これはペンです\n猫が好きです\n")
    (tmp_path / "two").write_text("これはペンです\n猫が好きだ\n")
    status, output, said = run("evaluate", "two", "one")
    assert (status, output[:9], "give --tokenizer char or use chrF" in said) == (0, "BLEU 0.00", True)
    status, output, said = run("evaluate", "two", "one", "--tokenizer", "char")
    assert (status, said) == (0, "")
    # Matches 11 of 12 characters, 9 of 10 pairs, 7 of 8 triples, 5 of 6 quadruples; 12 characters for 13.
    precision = (11 / 12 * 9 / 10 * 7 / 8 * 5 / 6) ** 0.25
    assert output.startswith(f"BLEU {100 * precision * math.exp(1 - 13 / 12):.2f} (")
    assert "tok:char" in output
