"""A conversion changes the model that it is given and returns a report alone."""

import keras
import numpy as np
import pytest

from rmsnorm_tf import Conversion, ConversionReport, replace_layer_norm, replace_rms_norm
from tests.backends import BACKEND, to_array
from tests.folding import (
    assert_same_outputs,
    converted,
    dense,
    layers,
    norm,
    outputs_of,
    with_drawn_weights,
)


def small_model(count=1):
    model = keras.Sequential([keras.Input((6,)), dense()])
    for i in range(count):
        model.add(norm(f"norm_{i}"))
        model.add(dense(f"dense_{i}"))
    return with_drawn_weights(model)


def test_a_report_is_printed_line_by_line():
    lines = str(replace_layer_norm(small_model(2))).splitlines()
    assert [line.split(",")[0] for line in lines[:2]] == ["norm_0: converted", "norm_1: converted"]
    assert len(lines) == 3
    assert str(ConversionReport([Conversion("a", False, "why")])) == "a: stays, why"


@pytest.mark.parametrize("convert", [replace_layer_norm, replace_rms_norm])
def test_a_report_says_what_computes_layer_norm_until_it_is_traced_again(convert):
    report = convert(small_model())
    assert ("tf.function" in report.remark) == (convert is replace_layer_norm)
    assert not replace_layer_norm(small_model(0)).remark


@pytest.mark.parametrize("convert", [replace_layer_norm, replace_rms_norm])
def test_the_parameters_of_a_converted_model_are_those_it_trains(convert):
    """On PyTorch each layer keeps a list of its own."""
    make = layers.RMSNormalization if convert is replace_rms_norm else layers.LayerNormalization
    inner = keras.Sequential(
        [keras.Input((6,)), dense(), make(name="norm"), dense("head")], name="inner"
    )
    model = keras.Sequential([keras.Input((6,)), inner, make(name="last")])
    model(np.ones((2, 6), "float32"))
    assert [entry.converted for entry in convert(model).entries] == [True] * 2
    if BACKEND == "torch":
        import torch

        for each in (model, inner):
            held = {id(p) for p in each.parameters()}
            assert held == {id(w.value) for w in each.trainable_weights}
        before = [to_array(w) for w in model.trainable_weights]
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        (model(torch.randn(16, 6)) ** 3).mean().backward()
        optimizer.step()
        assert all(
            np.any(to_array(w) != b) for w, b in zip(model.trainable_weights, before, strict=True)
        )
        state = {name: torch.full_like(value, 0.5) for name, value in model.state_dict().items()}
        model.load_state_dict(state)
        assert all(np.all(to_array(w) == 0.5) for w in model.weights)
    with_drawn_weights(model).compile("sgd", "mse")
    before = [to_array(w) for w in model.trainable_weights]
    model.fit(np.arange(12.0).reshape(2, 6), np.ones((2, 6)), verbose=0)
    assert all(
        np.any(to_array(w) != b) for w, b in zip(model.trainable_weights, before, strict=True)
    )


class ReadsGain(layers.Layer):
    """Multiplies by the gain of another layer's norm, which a conversion replaces."""

    def __init__(self, other):
        super().__init__()
        self.other = other

    def call(self, x):
        return x * self.other.gamma


def test_a_model_that_would_not_run_has_its_weights_and_parameters_back():
    first = norm("first")
    model = keras.Sequential([keras.Input((6,)), dense(), first, ReadsGain(first)])
    before = [id(w) for w in model.weights]
    expected = outputs_of(with_drawn_weights(model))
    names = list(model.state_dict()) if BACKEND == "torch" else []
    with pytest.raises(ValueError, match=r"AttributeError: (?s:.)* is as before"):
        replace_layer_norm(model)
    assert [id(w) for w in model.weights] == before
    assert_same_outputs(expected, model)
    if BACKEND == "torch":
        assert list(model.state_dict()) == names
        assert {id(p) for p in model.parameters()} == {id(w.value) for w in model.weights}


def test_nothing_to_convert_leaves_a_compiled_model_compiled():
    model = keras.Sequential([keras.Input((6,)), dense()])
    model.compile("sgd", "mse")
    assert converted(replace_rms_norm, model) == []
    assert model.compiled
