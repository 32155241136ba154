import pytest

pytest.importorskip("matplotlib")

from experiments.translation.measure.bootstrap import Comparison
from experiments.translation.sections.significance import section

SIGNATURE = "nrefs:1|bs:1000|seed:12345"
MEASURED = [
    Comparison("layernorm", "rmsnorm", 1, "news", [19.0, 19.5], 0.25, SIGNATURE),
    Comparison("baseline", "rmsnorm", 1, "news", [15.0, 19.5], 0.02, SIGNATURE),
]


def test_the_text_counts_the_comparisons_and_names_the_test(results):
    made = section(MEASURED, results)
    assert f"`{SIGNATURE}`" in made.text[0]
    assert made.text[1] == (
        "Holm's p is at most 0.05 in 1 of 2 comparisons: 0 of 1 of RMSNorm against LayerNorm; "
        "1 of 1 of RMSNorm against Baseline."
    )


def test_p_is_adjusted_for_the_number_of_comparisons(results):
    measured = [MEASURED[0], MEASURED[1]._replace(p=0.03)]
    made = section(measured, results)
    assert made.text[1].startswith("Holm's p is at most 0.05 in 0 of 2 comparisons: ")
    assert [row[-2:] for row in made.rows] == [["0.250", "0.250"], ["0.030", "0.060"]]


def test_a_pair_without_translations_is_named(results):
    made = section(MEASURED[1:], results)
    assert made.text[2] == "Not tested this way, because the translations were not kept: RMSNorm against LayerNorm."


def test_the_table_has_both_scores_and_their_difference(results):
    made = section(MEASURED, results)
    assert made.columns[3:5] == ["BLEU of the other", "BLEU"]
    assert made.rows[0] == [
        "RMSNorm against LayerNorm",
        "news",
        "1",
        "19.0",
        "19.5",
        "+0.5",
        "0.250",
        "0.250",
    ]
    assert [each["first"] for each in made.data] == ["layernorm", "baseline"]


def test_without_comparisons_there_is_no_section(results):
    assert section([], results) is None
