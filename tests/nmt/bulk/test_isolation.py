"""A model that fails on some lines translates the others."""

import random

import pytest

from nmt.bulk.isolation import HungError, ModelError, reason_of, translate_lines
from nmt.bulk.lines import Fault

FAILS = Fault("the model fails: ValueError: no x")


class Model:
    """Upper case. Fails on `x`."""

    def __init__(self):
        self.sizes = []

    def __call__(self, lines):
        self.sizes.append(len(lines))
        if b"x" in lines:
            raise ValueError("no x\nand more")
        return [line.upper() for line in lines]


def test_lines_that_the_model_fails_on_are_found():
    draw = random.Random(1)
    for _ in range(100):
        lines = draw.choices([b"a", b"b", b"x", Fault("is bad")], weights=[9, 9, 1, 1], k=draw.randrange(40))
        expected = [FAILS if line == b"x" else line if isinstance(line, Fault) else line.upper() for line in lines]
        assert translate_lines(Model(), lines) == expected


def test_a_model_that_does_not_fail_is_called_once():
    model = Model()
    translate_lines(model, [b"a", Fault("is bad"), b"b"])
    assert model.sizes == [2]


def test_no_line_is_blamed_if_the_model_fails_on_an_empty_one_too():
    calls = []

    def broken(lines):
        calls.append(lines)
        raise MemoryError("the device is gone")

    with pytest.raises(MemoryError, match="the device is gone"):
        translate_lines(broken, [b"a"] * 1024)
    assert len(calls) == 12


def test_no_line_is_blamed_if_the_model_does_not_answer():
    calls = []

    def hanging(lines):
        calls.append(lines)
        raise HungError("the model did not answer")

    with pytest.raises(HungError):
        translate_lines(hanging, [b"a"] * 1024)
    assert len(calls) == 1


def test_a_translation_of_two_lines_is_refused():
    results = translate_lines(lambda lines: [line * 2 for line in lines], [b"a", b"\n"])
    assert results == [b"aa", Fault("its translation has a line feed")]


@pytest.mark.parametrize(
    "said, reason",
    [
        ("Graph execution error:\n\nDetected at node A\n<stack traces unavailable>\nno x\n\t [[{{node A}}]]", "no x"),
        ("one\ntwo", "one"),
        ("", ""),
        ("Graph execution error:", "Graph execution error:"),
    ],
)
def test_the_reason_of_an_error_is_one_line(said, reason):
    assert reason_of(ValueError(said)) == f"ValueError: {reason}"


def test_an_error_of_the_model_is_its_own_reason():
    assert reason_of(ModelError("its process was killed")) == "its process was killed"
