"""Describes the devices that a command runs on, and why TensorFlow does not use a GPU."""

import os
import shutil

import tensorflow as tf

from ..concurrency import cores


def describe_devices(dtype: str, processes: int = 1) -> str:
    """Returns a line with processes, device, threads of an operation, and dtype of the products."""
    each = f"{processes} processes, each " if processes > 1 else ""
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        details = map(tf.config.experimental.get_device_details, gpus)
        names = ", ".join(found.get("device_name", "GPU") for found in details)
        return f"{each}on {names}, in {dtype}"
    threads = tf.config.threading.get_intra_op_parallelism_threads() or cores()
    at_once = f"{cores()} cores, {threads} thread{'s' * (threads > 1)} an operation"
    return f"{each}on the CPU ({at_once}), in {dtype}{_why_no_gpu()}"


def _why_no_gpu() -> str:
    """Returns why TensorFlow sees no NVIDIA GPU and what to do, or nothing if there is none."""
    if not (os.path.exists("/dev/nvidia0") or shutil.which("nvidia-smi")):
        return ""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return "; CUDA_VISIBLE_DEVICES hides the GPU"
    return (
        "; warning: there is an NVIDIA GPU that TensorFlow cannot use: it is built without CUDA, "
        "or a driver (libcuda.so.1) or CUDA library is missing; pip install "
        f"'tensorflow[and-cuda]=={tf.__version__}', docker run --gpus all in a container"
    )
