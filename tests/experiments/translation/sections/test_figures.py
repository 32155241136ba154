import itertools

import pytest

pytest.importorskip("matplotlib")

from experiments.translation.condition import Condition
from experiments.translation.sections.figures import centre_section, partial_section
from tests.experiments.translation.conftest import make_result

USUAL = Condition("rmsnorm", "RMSNorm", kind="rmsnorm")
TENTH = Condition("tenth", "a tenth", build=lambda name: None, partial=0.1, step_size_of="rmsnorm")


def moved(kind, part="all"):
    """Returns a condition with another centre."""
    name = f"{kind}-centre" + ("" if part == "all" else f"-{part}")
    return Condition(name, f"{kind}, {part}", kind=kind, centre=0.2, moved=part)


def seeds(condition, *bleu):
    """Returns a result for each seed, with this BLEU at the best validation."""
    return [make_result(condition, seed, bleu=[best]) for seed, best in enumerate(bleu, 1)]


def test_rows_are_shown_with_those_of_their_kinds(results):
    assert centre_section(results).rows == [
        ["RMSNorm", "none", "1", "20.0", "", ""],
        ["RMSNorm, elsewhere", "all", "1", "20.0", "+0.0 (1 seed)", ""],
    ]


def test_a_row_is_shown_alone_if_its_kind_is_missing(results):
    made = centre_section([each for each in results if each.condition.name == "moved"])
    assert [cells[0] for cells in made.rows] == ["RMSNorm, elsewhere"]
    assert centre_section(seeds(USUAL, 20)) is None


def test_the_text_has_the_papers_best_values():
    made = centre_section([*seeds(moved("rmsnorm"), 20), *seeds(moved("layernorm"), 10)])
    assert "3.8 with LayerNorm and 16.0 with" in made.text[-1]


def test_the_differences_are_told_for_every_part():
    results = []
    gaps = (("embeddings", 1), ("matrices", -2))
    for (part, gap), kind in itertools.product(gaps, ("layernorm", "rmsnorm")):
        bleu = 20 + gap * (kind == "rmsnorm")
        results += seeds(moved(kind, part), bleu, bleu + 1)
    told = {cells[0]: cells[-1] for cells in centre_section(results).rows}
    assert told["rmsnorm, embeddings"] == "+1.0 [+1.0, +1.0]"
    assert told["rmsnorm, matrices"] == "-2.0 [-2.0, -2.0]"
    assert told["layernorm, embeddings"] == ""


def test_a_part_is_compared_with_rmsnorm_seed_by_seed():
    made = partial_section([*seeds(USUAL, 20, 21, 23), *seeds(TENTH, 19, 20, 22, 40)])
    # BLEU on the two test sets is 1 and 2 below the best of the validations.
    assert made.columns[:4] == ["", "k of 16", "k of 32", "k of 64"]
    assert made.rows == [
        ["a tenth", "2", "4", "7", "4", "25.2 (sd 9.9)", "23.8 (sd 9.9)", "-1.00 [-1.00, -1.00]"]
    ]
    assert made.data == {"tenth": {"seeds": 4, "differences": [-1, -1, -1]}}
    assert partial_section(seeds(USUAL, 20)) is None
