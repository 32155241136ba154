import random

import pytest

from experiments.translation.measure import bootstrap
from experiments.translation.measure.bootstrap import KEPT, compare_pairs
from experiments.translation.results import Result
from experiments.translation.row import Row
from nmt.decoding.metrics import bleu
from nmt.errors import UserError
from tests.experiments.translation.conftest import ROWS

WORDS = ["ein", "eine", "Mann", "Frau", "Hund", "Ball", "rot", "blau", "geht", "steht", "auf", "der", "Wiese"]


@pytest.fixture
def references(tmp_path):
    generator = random.Random(0)
    lines = [" ".join(generator.choices(WORDS, k=10)) for _ in range(60)]
    return {"news": write(tmp_path / "news", lines)}


@pytest.fixture
def translated(references, tmp_path):
    """Of seed 1, both lack the last word of every second line, in turn. Of seed 2, RMSNorm lacks every second word."""
    lines = references["news"].read_text().splitlines()
    odd = [line.rpartition(" ")[0] if number % 2 else line for number, line in enumerate(lines)]
    even = [line if number % 2 else line.rpartition(" ")[0] for number, line in enumerate(lines)]
    half = [" ".join(line.split()[::2]) for line in lines]
    texts = {("layernorm", 1): odd, ("rmsnorm", 1): even, ("layernorm", 2): odd, ("rmsnorm", 2): half}
    return [
        Result(
            ROWS[kind],
            seed,
            {"tests": {"news": {"bleu": bleu(text, lines).score}}},
            {"news": write(tmp_path / f"{kind}-{seed}", text)},
        )
        for (kind, seed), text in texts.items()
    ]


@pytest.fixture
def compare(references, place):
    """Compares results, by default with references."""
    place.logs.mkdir(parents=True)
    return lambda results, references=references: compare_pairs(results, references, place)


def write(path, lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def test_only_different_translations_are_significant(translated, compare):
    alike, different = compare(translated)
    assert alike.p > 0.05
    assert different.p < 0.01
    assert different.bleu[0] - different.bleu[1] > 50
    assert "bs:1000|seed:12345" in different.signature


def test_runs_are_paired_by_seed(translated, compare):
    assert [each[:4] for each in compare(translated)] == [
        ("layernorm", "rmsnorm", 1, "news"),
        ("layernorm", "rmsnorm", 2, "news"),
    ]


def test_an_added_row_of_the_same_kind_is_not_compared(translated, compare):
    added = translated[0]._replace(row=Row("added", "RMSNorm, added", kind="rmsnorm"))
    assert compare([*translated, added]) == compare(translated)


def test_kept_results_are_reused_without_the_texts(translated, compare):
    found = compare(translated)
    for result in translated:
        result.translations["news"].unlink(missing_ok=True)
    assert compare(translated, {}) == found


def test_kept_results_of_another_training_are_not_reused(translated, compare):
    first, second = compare(translated)
    translated[0].log["tests"]["news"]["bleu"] += 1
    assert compare(translated, {}) == [second]
    translated[0].log["tests"]["news"]["bleu"] -= 1
    assert compare(translated) == [first, second]


def test_kept_results_with_fewer_samples_are_not_reused(translated, compare, monkeypatch):
    monkeypatch.setattr(bootstrap, "SAMPLES", 10)
    compare(translated)
    monkeypatch.setattr(bootstrap, "SAMPLES", 20)
    assert compare(translated, {}) == []


def test_a_missing_translation_is_named(translated, compare):
    path = translated[0].translations["news"]
    path.unlink()
    with pytest.raises(UserError, match=str(path)):
        compare(translated)


def test_without_comparisons_no_file_is_written(translated, compare, place):
    assert compare(translated, {}) == []
    assert not (place.logs / KEPT).exists()
