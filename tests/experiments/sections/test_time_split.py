import pytest

pytest.importorskip("matplotlib")

from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from experiments.sections.colours import COLOURS
from experiments.sections.time_split import section


@pytest.fixture
def made():
    """LayerNorm's norms take 50 ms more than nothing, but in one round; RMSNorm's products are a little slower."""
    rounds = {"none": [0.2, 0.2, 0.2, 0.3], "layernorm": [0.25] * 4, "rmsnorm": [0.22, 0.22, 0.22, 0.32]}
    medians = {"none": 0.2, "layernorm": 0.25, "rmsnorm": 0.22}
    updates = {kind: {"rounds": found, "seconds": medians[kind]} for kind, found in rounds.items()}
    shares = {kind: {"matmul": 0.1 / seconds, "softmax": 0.01 / seconds} for kind, seconds in medians.items()}
    shares["rmsnorm"]["matmul"] = 0.104 / 0.22
    split = {"shares": shares, "threads": 2, "widths": [12, 16, 28]}
    return section(split, {"threads": 2, "updates": {"float32": updates}})


def test_every_part_has_milliseconds_and_share(made):
    assert made.columns[1:5] == ["norm", "matrix products", "softmax", "the rest"]
    assert made.rows[1] == [
        "LayerNorm",
        "50.0 ms, 20.0%",
        "100.0 ms, 40.0%",
        "10.0 ms, 4.0%",
        "90.0 ms, 36.0%",
        "250.0 ms",
        "40.0%",  # 399 of the paper's 665 seconds are the Baseline's
    ]
    assert made.rows[0][1] == "0.0 ms, 0.0%"


def test_the_text_says_how_exact_the_split_is(made):
    text = " ".join(made.text)
    assert "padded to 12 to 28 tokens" in text
    assert "LayerNorm's norms take 20.0% of the update (half of the rounds lie between 25.0 and 50.0 ms)" in text
    assert "differ by up to 2.0% of the Baseline's update" in text  # 4 of 200 ms


def test_bars_end_where_the_update_does(made):
    figure = Figure()
    made.plot(figure)
    ours, published = figure.axes
    ends = {round(bar.get_x() + bar.get_width(), 6) for bar in ours.patches}
    assert {200.0, 250.0, 220.0} <= ends
    assert max(bar.get_x() + bar.get_width() for bar in published.patches) == 665
    colours = {tuple(bar.get_facecolor()) for bar in ours.patches}
    assert {to_rgba(COLOURS["layernorm"]), to_rgba(COLOURS["rmsnorm"])} <= colours
