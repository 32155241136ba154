"""The scripts gpu_programs.py and gpu.py, run in processes of its own."""

import importlib.util
import itertools
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.gpu_values import array, difference, integers, normal, summary

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(script, *arguments):
    command = [sys.executable, BENCHMARKS / script, *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The folder of programs that the script writes for one shape."""
    folder = tmp_path_factory.mktemp("programs")
    ended = run(
        "gpu_programs.py", folder, "--shapes", "128x128", "--dtypes", "float32", "--width", "0"
    )
    assert ended.returncode == 0, ended.stderr
    return folder


def entries(folder):
    found = json.loads((folder / "index.json").read_text())["programs"]
    return {(entry["kind"], entry["group"]["passes"]): entry for entry in found}


@pytest.mark.slow
def test_every_kind_is_made_for_both_passes(programs):
    kinds = ["rmsnorm_tf", "keras RMSNormalization", "keras LayerNormalization"]
    wanted = set(itertools.product(kinds, ["forward", "backward"]))
    assert entries(programs).keys() == wanted


@pytest.mark.slow
def test_sums_are_plain_and_expected_outputs_equal_the_equation(programs):
    entry = entries(programs)["rmsnorm_tf", "forward"]
    assert (
        b"\x12\x03dot" not in (programs / entry["file"]).read_bytes()
    )  # the opcode of a matrix product
    x, scale = (array(each, seed).astype(np.float64) for seed, each in enumerate(entry["inputs"]))
    y = x / np.sqrt(np.mean(x**2, -1, keepdims=True) + 1e-6) * scale
    assert difference(entry["expected"], [summary(y)]) < 1e-6


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="needs JAX, which the project does not"
)
def test_jax_and_tensorflow_agree(programs, tmp_path):
    ended = run("gpu.py", programs, "--json", tmp_path / "figures.json", "--rounds", "3")
    assert ended.returncode == 0, ended.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert [len(entry["kinds"]) for entry in figures["groups"]] == [4, 4]  # backward, then forward
    for entry in figures["groups"]:
        for found in entry["kinds"].values():
            assert found["difference"] < 1e-5
            assert len(found["rounds"]) == 3
    assert ended.stdout.count("  rmsnorm_tf again: ") == 2
    assert "| 128x128 | float32 | " in ended.stdout


def test_the_same_description_and_seed_give_the_same_array():
    description = normal([50, 40], "bfloat16", 3.0, 0.5)
    np.testing.assert_array_equal(array(description, 1), array(dict(description), 1))
    assert not np.array_equal(array(description, 1), array(description, 2))
    wide = array(description, 1).astype(np.float64)
    assert wide.mean() == pytest.approx(3.0, abs=0.05)
    assert wide.std() == pytest.approx(0.5, abs=0.05)
    assert set(array(integers([100], 3), 0)) == {0, 1, 2}


def test_a_difference_in_any_array_or_row_is_found():
    x = np.random.default_rng(0).standard_normal([300, 20])
    other = x.copy()
    other[7] *= 2  # not among the entries of the summary
    assert difference([summary(x)], [summary(x)]) == 0
    assert difference([summary(x), summary(x)], [summary(x), summary(other)]) > 1e-3
    assert difference([summary(x)], [summary(x[::-1])]) > 0.1  # of the same norm
    assert np.isnan(difference([summary(x)], [summary(x * np.nan)]))


def line(name, *spans):
    events = [SimpleNamespace(start_ns=start, duration_ns=stop - start) for start, stop in spans]
    return SimpleNamespace(name=name, lines=None, events=events)


def test_overlapping_streams_count_once(monkeypatch):
    pytest.importorskip("jax")
    monkeypatch.syspath_prepend(BENCHMARKS)
    from gpu import busy_seconds

    gpu = SimpleNamespace(
        name="/device:GPU:0",
        lines=[
            line("Stream #1(Compute)", (100, 300), (500, 600)),
            line("Stream #2(MemcpyD2D)", (250, 400), (520, 530)),
            line("XLA Ops", (0, 1000)),
        ],
    )
    cpu = SimpleNamespace(name="/host:CPU", lines=[line("Stream", (0, 1000))])
    assert busy_seconds([cpu, gpu]) == pytest.approx(400e-9)
    assert busy_seconds([cpu]) is None


def test_a_folder_without_programs_is_refused(tmp_path):
    pytest.importorskip("jax")
    ended = run("gpu.py", tmp_path, "--json", tmp_path / "figures.json")
    assert ended.returncode == 2
    assert f"{tmp_path} holds no programs" in ended.stderr
    assert "Traceback" not in ended.stderr
