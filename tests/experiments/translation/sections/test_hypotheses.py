"""Claims on seeds, of all sections together."""

import pytest

pytest.importorskip("scipy")

from experiments.reporting.intervals import holm, t_test
from experiments.translation.row import Row
from experiments.translation.sections.hypotheses import HYPOTHESES, Hypothesis, Paired, compare
from tests.experiments.translation.conftest import make_result


def results_of(name, bleu, losses=None):
    """Returns a result for each seed, with this BLEU at the best validation and this training loss at the last."""
    found = []
    for seed, best in enumerate(bleu, 1):
        found.append(make_result(Row(name, name, kind="none"), seed, bleu=[best]))
        if losses:
            found[-1].log["validations"][-1]["train_loss"] = losses[seed - 1]
    return found


def test_p_is_adjusted_for_the_claims_of_all_measures():
    """On the test set, on the training loss and on the dev set."""
    results = [
        *results_of("layernorm-recipe", [20, 21, 23], [2.0, 2.1, 2.3]),
        *results_of("none-recipe", [19, 19, 20], [3.0, 3.3, 3.2]),
        *results_of("rmsnorm-centre", [10, 11, 13]),
        *results_of("layernorm-centre", [20, 25, 21]),
    ]
    found = {each.hypothesis.measure: each for each in compare(results)}
    assert {name: [round(gain, 6) for gain in each.gains] for name, each in found.items()} == {
        "test": [1, 2, 3],
        "loss": [1.0, 1.2, 0.9],
        "dev": [-10, -14, -8],
    }
    adjusted = holm([t_test(each.gains) for each in found.values()])
    assert [each.p for each in found.values()] == pytest.approx(adjusted)
    raw = {name: t_test(each.gains) for name, each in found.items()}
    assert {name for name, each in found.items() if each.p == raw[name]} == {max(raw, key=raw.get)}


def test_seeds_that_one_row_lacks_are_left_out():
    (found,) = compare([*results_of("layernorm", [20, 21, 22]), *results_of("baseline", [10, 12])])
    assert found.gains == [10, 9]
    assert compare(results_of("layernorm", [20])) == []


@pytest.mark.parametrize(
    ("outcome", "gains", "p", "shown", "verdict"),
    [
        ("better", [1.0, 1.1], 0.01, "better", "borne out"),
        ("better", [-1.0, -1.1], 0.01, "worse", "the opposite: worse"),
        ("better", [1.0, 1.01], 0.06, "neither", "not shown by 2 seeds after Holm's correction"),
        ("better", [1.0, 3.0], 0.3, "neither", "not shown by 2 seeds"),
        ("better", [0.0, 0.01], 0.5, "equal", "not borne out: equal"),
        ("different", [-1.0, -1.1], 0.01, "worse", "borne out"),
        ("different", [1.0, 1.1], 0.01, "better", "borne out"),
        ("different", [0.0, 0.01], 0.5, "equal", "not borne out: equal"),
        ("equal", [0.1, 0.11], 0.01, "equal", "borne out: 90% interval [+0.07, +0.14] within ±0.5 BLEU"),
        ("equal", [1.0, 1.1], 0.01, "better", "not borne out: better"),
        ("equal", [1.0, 1.1], 0.06, "neither", "not shown: 90% interval [+0.73, +1.37] not within ±0.5 BLEU"),
        ("equal", [0.1], None, "neither", "not shown by 1 seed"),
    ],
)
def test_a_claim_is_judged_by_the_margin_and_the_adjusted_p(outcome, gains, p, shown, verdict):
    found = Paired(Hypothesis("one", "other", outcome), [], gains, p)
    assert (found.shown, found.verdict) == (shown, verdict)


def test_a_margin_of_bleu_does_not_make_losses_equal():
    found = Paired(Hypothesis("one", "other", "better", "loss"), [], [0.01, 0.011], 0.5)
    assert found.shown == "neither"


def test_no_claim_is_made_twice():
    assert len({each[:2] + each[3:] for each in HYPOTHESES}) == len(HYPOTHESES)
