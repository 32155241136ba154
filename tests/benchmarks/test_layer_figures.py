"""The picture of the layer's times."""

import itertools

import pytest

pytest.importorskip("matplotlib")

from benchmarks import layer_figures

SHAPES = ([80, 1024], [4096, 1024], [16384, 1024], [2048, 4096], [300000, 16], [16000000, 4], [1024, 64], [1, 65536])


def test_labels_do_not_collide():
    seconds = {layer_figures.OURS: [1.0], layer_figures.KERAS: [2.0], layer_figures.LAYERNORM: [3.0]}
    same = {"operation": "norm", "dtype": "float32", "bound": [0.5], "seconds": seconds}
    places = itertools.product(("eager", "tf.function", "xla"), ("forward", "forward+backward"), SHAPES)
    figure = layer_figures.picture([{**same, "mode": m, "passes": p, "shape": shape} for m, p, shape in places])
    figure.draw_without_rendering()
    labels = [label for panel in figure.axes[-3:] for label in panel.get_xticklabels()]
    boxes = [label.get_window_extent() for label in labels]
    assert [label.get_text() for label in labels[:2]] == ["80 x 1024", "4096 x 1024"]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert all(box.y0 >= 0 for box in boxes)
