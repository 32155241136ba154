"""Every prefix of the patches of nmt builds the kinds by their equations."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = (ROOT / "patches/nmt/series").read_text().split()
KINDS = ["none", "layernorm", *(name[len("add-") : -len(".patch")] for name in NAMES)]


# Prints the output and the number of weights of each kind, for each of the given folders.
BUILD_ALL = """
import json, sys
import numpy as np

folders, x, gain = json.load(sys.stdin)
built = []
for folder in folders:
    sys.path.insert(0, folder)
    from nmt.normalization import KINDS, Normalization, build_normalization, may_center
    assert sys.modules["nmt"].__file__.startswith(folder), sys.modules["nmt"].__file__
    built.append({})
    for kind in KINDS:
        layer = build_normalization(Normalization(kind), len(gain), "n")
        weights = layer.get_weights()
        layer.set_weights([np.array(gain), *weights[1:]] if weights else [])
        y = np.asarray(layer(np.array(x, "float32")))
        built[-1][kind] = [y.tolist(), len(weights)]
        if may_center(kind):
            center = len(weights) == 1
            other = build_normalization(Normalization(kind, center), len(gain), "n")
            other.set_weights([np.array(gain), *([np.ones(len(gain))] if center else [])])
            difference = np.asarray(other(np.array(x, "float32"))) - y
            assert len(other.get_weights()) == 3 - len(weights)
            assert np.allclose(difference, center, atol=1e-5), kind
    del sys.path[0], sys.modules["nmt.normalization"], sys.modules["nmt"]
json.dump(built, sys.stdout)
"""
X = np.random.default_rng(0).normal(1, 2, size=(4, 40))
GAIN = np.random.default_rng(1).uniform(0.5, 2, size=40)
EPSILON = 1e-5


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Outputs by kind with no patch, the first, the first two, ..., computed in one process."""
    root = tmp_path_factory.mktemp("prefixes")
    folders = []
    for name in [None, *NAMES]:
        folder = root / (name or "pristine")
        (folder / "nmt").mkdir(parents=True)
        for file in ("__init__.py", "normalization.py"):
            (folder / "nmt" / file).write_bytes((ROOT / "nmt" / file).read_bytes())
        apply = [sys.executable, str(ROOT / "patches/apply.py")]
        subprocess.run([*apply, "revert", folder], check=True, capture_output=True)
        if name:
            through = ["--through", name]
            subprocess.run([*apply, "apply", folder, *through], check=True, capture_output=True)
        folders.append(str(folder))
    process = subprocess.run(
        [sys.executable, "-c", BUILD_ALL],
        input=json.dumps([folders, X.tolist(), GAIN.tolist()]),
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.mark.parametrize("k", range(len(NAMES) + 1))
def test_every_prefix_computes_the_equations_of_its_kinds(built, k):
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
    assert list(built[k]) == KINDS[: 2 + k]
    for kind, (output, weights) in built[k].items():
        assert kind in expected, f"write the equation of {kind} above"
        np.testing.assert_allclose(output, expected[kind][0], rtol=1e-5, atol=1e-6, err_msg=kind)
        assert weights == expected[kind][1], kind
