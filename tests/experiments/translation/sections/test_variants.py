import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.translation.row import Row
from experiments.translation.sections.variants import section
from tests.experiments.translation.conftest import make_result

USUAL = Row("rmsnorm", "RMSNorm", kind="rmsnorm")
VARIANT = Row("other", "RMSNorm, other", build=lambda name: None, step_size_of="rmsnorm")


def seeds(row, *bleu):
    return [make_result(row, seed, bleu=[best]) for seed, best in enumerate(bleu, 1)]


@pytest.mark.parametrize(
    ("bleu", "shown"),
    [
        ((20.1, 21.0, 21.9), "no difference"),
        ((18.1, 19.0, 19.9), "worse"),
        ((22.1, 23.0, 23.9), "better"),
        ((18.0, 21.0, 25.0), "not shown by 3 seeds"),
        ((20.0,), "not shown by 1 seed"),
    ],
)
def test_a_variant_is_compared_with_the_row_that_it_varies_seed_by_seed(bleu, shown):
    (cells,) = section([*seeds(USUAL, 20, 21, 22), *seeds(VARIANT, *bleu)]).rows
    assert (cells[0], cells[1], cells[-1]) == ("RMSNorm, other", str(len(bleu)), shown)


def test_the_text_counts_the_changes_that_matter():
    others = [Row(name, name, build=len, step_size_of="rmsnorm") for name in ("worse", "same", "open")]
    results = [*seeds(others[0], 18, 19, 20), *seeds(others[1], 20, 21, 22), *seeds(others[2], 18, 21, 25)]
    assert section([*seeds(USUAL, 20, 21, 22), *results]).text[1] == (
        "Of 3 changes, 1 matters and 1 makes no difference; for the others, the seeds show neither."
    )


def test_the_difference_is_that_of_the_test_set():
    made = section([*seeds(USUAL, 20, 21), *seeds(VARIANT, 19, 21)])
    assert made.data == {"other": {"seeds": 2, "differences": [-1, 0]}}
    figure = Figure()
    made.plot(figure)
    (axes,) = figure.axes
    assert [-1, 0] in [list(line.get_xdata()) for line in axes.lines]
    assert axes.containers[0].lines[0].get_xdata()[0] == -0.5


def test_without_variants_there_is_no_section(results):
    assert section(results) is None
