import random

import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.results import Result
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
    found = {each["from"]: each for each in measure(translated, references)}
    assert found["none"]["p"] < 0.01
    assert found["layernorm"]["p"] > 0.05
    assert found["none"]["bleu"][1] - found["none"]["bleu"][0] > 50


def test_seeds_are_paired(translated, references):
    assert [(each["from"], each["seed"]) for each in measure(translated, references)] == [("layernorm", 1), ("none", 1)]


def test_the_text_counts_them(translated, references):
    made = section(measure(translated, references))
    assert "Of the 2 differences 1 have p below 0.05; RMSNorm against Baseline (seed 1, news) is +" in made.text[1]
    figure = Figure()
    made.plot(figure)
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "LayerNorm, news, seed 1",
        "Baseline, news, seed 1",
    ]
