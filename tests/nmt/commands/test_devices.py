"""The line that says what a command runs on, and why TensorFlow does not use a GPU that is
there."""

from pathlib import Path

import pytest
import tensorflow as tf

from nmt.commands.devices import describe_devices

pytestmark = pytest.mark.skipif(
    bool(tf.config.list_physical_devices("GPU")) or Path("/dev/nvidia0").exists(),
    reason="this machine has a GPU",
)


@pytest.fixture
def gpu(monkeypatch, tmp_path):
    """Puts a program `nvidia-smi` on the path, as the driver of a GPU does."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "nvidia-smi"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_without_a_gpu_the_line_ends_with_the_dtype(monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert describe_devices("float32").startswith("on the CPU (")
    assert describe_devices("mixed_bfloat16").endswith("), in mixed_bfloat16")
    assert describe_devices("float32", 3).startswith("3 processes, each on the CPU (")


def test_missing_libraries_are_named_with_what_installs_them(gpu):
    said = describe_devices("float32")
    assert "libcuda.so.1" in said
    assert f"pip install 'tensorflow[and-cuda]=={tf.__version__}', docker run --gpus all" in said


@pytest.mark.parametrize("visible", ["", "-1"])
def test_a_gpu_that_the_user_hides_is_no_mistake(monkeypatch, gpu, visible):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert describe_devices("float32").endswith("CUDA_VISIBLE_DEVICES hides the GPU")


def test_train_and_translate_begin_with_the_line(monkeypatch, gpu, train, run):
    for status, _, said in (train(), run("translate", "-m", "model", "-i", "dev.en", "-o", "out")):
        assert status == 0, said
        (line,) = (line for line in said.splitlines() if "on the CPU (" in line)
        assert line.split()[0] in ("trains", "translates")
        assert "; warning: there is an NVIDIA GPU" in line
