"""Every prefix of the patches of nmt builds the kinds by their equations."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = (ROOT / "patches/nmt/series").read_text().split()
KINDS = ["none", "layernorm", *(name[len("add-") : -len(".patch")] for name in NAMES)]
X = np.random.default_rng(0).normal(1, 2, size=(4, 40))
GAIN = np.random.default_rng(1).uniform(0.5, 2, size=40)
EPSILON = 1e-5


@pytest.mark.parametrize("k", range(len(NAMES) + 1))
def test_every_prefix_computes_the_equations_of_its_kinds(project, k):
    if k:
        project.apply("apply", "--through", NAMES[k - 1], check=True)
    spec = importlib.util.spec_from_file_location("patched_normalization", project.file)
    patched = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(patched)
    mean_square = np.mean(X**2, -1, keepdims=True)
    centred = X - np.mean(X, -1, keepdims=True)
    first = X[:, :3]  # 6.25 % of 40 entries, rounded up
    expected = {
        "none": (X, 0),
        "layernorm": (centred / np.sqrt(X.var(-1, keepdims=True) + EPSILON) * GAIN, 2),
        "rmsnorm": (X / np.sqrt(mean_square + EPSILON) * GAIN, 1),
        "prmsnorm": (X / np.sqrt(np.mean(first**2, -1, keepdims=True) + EPSILON) * GAIN, 1),
        "l2norm": (X / np.sqrt(40 * mean_square + 40 * EPSILON) * GAIN, 1),
    }
    assert list(patched.KINDS) == KINDS[: 2 + k]
    for kind in patched.KINDS:
        assert kind in expected, f"write the equation of {kind} above"
        output, count = expected[kind]
        layer = patched.build_normalization(patched.Normalization(kind), 40, "norm")
        layer.set_weights([GAIN, np.zeros(40)][:count])
        found = layer(np.float32(X))
        np.testing.assert_allclose(found, output, rtol=1e-5, atol=1e-6, err_msg=kind)
        if patched.may_center(kind):
            moved = patched.Normalization(kind, center=count == 1)
            other = patched.build_normalization(moved, 40, "norm")
            other.set_weights([GAIN, np.ones(40)][: 3 - count])
            difference = other(np.float32(X)) - found
            np.testing.assert_allclose(difference, count == 1, atol=1e-5, err_msg=kind)
