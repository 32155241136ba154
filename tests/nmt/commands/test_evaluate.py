"""`python -m nmt evaluate`: what it prints, and mistakes in its files."""

import pytest


def test_bleu_and_exact_matches_are_printed(run, tmp_path):
    (tmp_path / "translations").write_text("a b c d\ne f g h\n")
    (tmp_path / "references").write_text("a b c d\ne f g i\n")
    status, output, _ = run("evaluate", "translations", "references")
    assert status == 0
    # Matches 7 of 8 words, 5 of 6 pairs, 3 of 4 triples and 1 of 2 quadruples, at equal length.
    assert output.startswith(f"BLEU {100 * (7 / 8 * 5 / 6 * 3 / 4 * 1 / 2) ** 0.25:.2f} (nrefs:1|case:mixed|")
    assert "exact match 50.0%" in output


@pytest.mark.parametrize(
    ("references", "said"),
    [
        (b"one\n", "there are 2 translations and 1 references"),
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
