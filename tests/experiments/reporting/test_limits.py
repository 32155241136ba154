import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from experiments.reporting.limits import show_near


@pytest.mark.parametrize(
    ("far", "text"),
    [
        ([3.0, 2.0], "◄ 2.0 to 3.0"),
        ([2.0], "◄ 2.0"),
        ([99.0], "99.0 ►"),
        ([19.5, 99.0], "19.5 to 99.0 ►"),
        ([19.5], None),
    ],
)
def test_values_far_from_the_centre_are_text(far, text):
    axes = Figure().subplots()
    show_near(axes, {0: [19.0, 20.0], 1: far}, 20.0, 8.0)
    assert [each.get_text() for each in axes.texts] == ([text] if text else [])
    assert axes.get_xlim() == (18.5, 20.5)


def test_a_row_has_a_text_of_its_own_and_other_values_are_shown_if_they_are_near():
    axes = Figure().subplots()
    show_near(axes, {0: [1.0], 1: [9.0, 50.0]}, 0.0, 8.0, {1: "much"}, [-3.0, 99.0])
    assert [each.get_text() for each in axes.texts] == ["much ►"]
    assert axes.get_xlim() == (-3.5, 1.5)
