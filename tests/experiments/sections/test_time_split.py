import pytest

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from experiments.sections.colours import COLOURS
from experiments.sections.time_split import section


@pytest.fixture
def measured():
    base = {"matmul": 0.1, "softmax": 0.01, "rest": 0.09}
    return {
        "kinds": {
            "none": {"norm": 0.0, **base, "total": 0.2},
            "layernorm": {"norm": 0.05, **base, "total": 0.25},
            "rmsnorm": {"norm": 0.02, **base, "matmul": 0.104, "rest": 0.086, "total": 0.22},
        },
        "norm_quartiles": {"none": [0, 0], "layernorm": [0.049, 0.052], "rmsnorm": [0.019, 0.021]},
        "threads": 2,
        "widths": [12, 16, 28],
    }


def test_every_part_has_milliseconds_and_share(measured):
    made = section(measured)
    assert made.columns[1:5] == ["norm", "matrix products", "softmax", "the rest"]
    assert made.rows[1][:2] == ["LayerNorm", "50.0 ms, 20.0%"]
    assert made.rows[1][5:] == ["250.0 ms", "40.0%"]  # 399 of the paper's 665 seconds are the Baseline's
    assert all(len(row) == len(made.columns) for row in made.rows)


def test_the_text_says_how_exact_the_split_is(measured):
    text = " ".join(section(measured).text)
    assert "padded to 12 to 28 tokens" in text
    assert "LayerNorm's norms take 20.0% of the update (half of the rounds lie between 49.0 and 52.0 ms)" in text
    assert "differ by up to 2.0% of the Baseline's update" in text  # 4 of 200 ms


def test_bars_end_where_the_update_does(measured):
    figure = Figure()
    section(measured).plot(figure)
    ours, published = figure.axes
    ends = {round(bar.get_x() + bar.get_width(), 6) for bar in ours.patches}
    assert {200.0, 250.0, 220.0} <= ends
    assert max(bar.get_x() + bar.get_width() for bar in published.patches) == 665
    colours = {tuple(bar.get_facecolor()) for bar in ours.patches}
    assert {to_rgba(COLOURS["layernorm"]), to_rgba(COLOURS["rmsnorm"])} <= colours
