import random

import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.results import Result
from experiments.row import Row
from experiments.sections.significance import section
from experiments.significance import measure


@pytest.fixture
def references(tmp_path):
    words = [
        "ein",
        "eine",
        "Mann",
        "Frau",
        "Hund",
        "Ball",
        "rot",
        "blau",
        "geht",
        "steht",
        "auf",
        "der",
        "die",
        "Straße",
        "Wiese",
    ]
    generator = random.Random(0)
    lines = [" ".join(generator.choices(words, k=10)) for _ in range(60)]
    (tmp_path / "news").write_text("\n".join(lines) + "\n")
    return {"news": tmp_path / "news"}


@pytest.fixture
def translated(results, references):
    """The Baseline lacks every second word; LayerNorm and RMSNorm the last word of every second line, in turn."""
    lines = references["news"].read_text().splitlines()
    texts = {
        "none": [" ".join(line.split()[::2]) for line in lines],
        "layernorm": [line.rpartition(" ")[0] if number % 2 else line for number, line in enumerate(lines)],
        "rmsnorm": [line if number % 2 else line.rpartition(" ")[0] for number, line in enumerate(lines)],
    }
    return [Result(row, seed, log, {"news": texts.get(row.kind, [])}) for row, seed, log, _ in results]


def test_only_what_differs_is_significant(translated, references):
    found = {each.first.row.name: each for each in measure(translated, references)}
    assert found["baseline"].p < 0.01
    assert found["layernorm"].p > 0.05
    assert found["baseline"].bleu[1] - found["baseline"].bleu[0] > 50
    assert "bs:1000|seed:12345" in found["baseline"].signature


def test_seeds_are_paired(translated, references):
    found = measure(translated, references)
    assert [(each.first.row.name, each.first.seed, each.second.seed) for each in found] == [
        ("layernorm", 1, 1),
        ("baseline", 1, 1),
    ]


def test_an_added_row_of_the_same_kind_is_not_compared(translated, references):
    added = translated[0]._replace(row=Row("added", "RMSNorm, added", kind="rmsnorm"))
    assert {each.second.row.name for each in measure([*translated, added], references)} == {"rmsnorm"}


def test_the_text_counts_them_and_names_the_test(translated, references):
    made = section(measure(translated, references))
    assert "|bs:1000|seed:12345|" in made.text[0]
    assert made.text[1].startswith("p is at most 0.05 in 1 of 2 comparisons: RMSNorm against Baseline (seed 1, news, +")
    assert len(made.text) == 2
    assert made.columns[3:5] == ["BLEU of the other", "BLEU of RMSNorm"]
    assert [each["from"] for each in made.data] == ["layernorm", "baseline"]
    figure = Figure()
    made.plot(figure)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "LayerNorm, news, seed 1",
        "Baseline, news, seed 1",
    ]


def test_recipes_are_called_recipes(translated, references):
    translated[0].log["options"]["learning_rate"] = 0.5
    assert section(measure(translated, references)).text[2:] == [
        "RMSNorm against Baseline compares two recipes, not only two norms: Baseline has `learning_rate` 0.5 instead "
        "of the default."
    ]


def test_without_a_pair_there_is_nothing_to_say(translated, references):
    assert section(measure([each for each in translated if each.row.name != "rmsnorm"], references)) is None
