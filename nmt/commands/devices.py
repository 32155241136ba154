"""What a command runs on: the device, threads and dtype, and why TensorFlow does not use a GPU that is there."""

import ctypes
import os
import shutil
from pathlib import Path

import tensorflow as tf

from ..text.parallel import cores

_DRIVER = "libcuda.so.1"
_INSTALL = f"pip install 'tensorflow[and-cuda]=={tf.__version__}'"


def describe_devices(dtype: str, processes: int = 1) -> str:
    """Returns a line with processes, device, threads of an operation, and dtype of the products."""
    each = f"{processes} processes, each " if processes > 1 else ""
    if gpus := tf.config.list_physical_devices("GPU"):
        details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
        names = ", ".join(found.get("device_name", "GPU") for found in details)
        return f"{each}on {names}, in {dtype}"
    threads = tf.config.threading.get_intra_op_parallelism_threads() or cores()
    at_once = f"{cores()} cores, {threads} thread{'s' * (threads > 1)} an operation"
    return f"{each}on the CPU ({at_once}), in {dtype}{_why_no_gpu()}"


def _why_no_gpu() -> str:
    """Returns why TensorFlow sees no NVIDIA GPU and what to do, or nothing if there is none."""
    if not (Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi")):
        return ""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and visible.strip() in ("", "-1"):
        return f"; CUDA_VISIBLE_DEVICES={visible} hides the GPU"
    build = tf.sysconfig.get_build_info()
    cuda, cudnn = build.get("cuda_version", "?"), build.get("cudnn_version", "?")
    if not build.get("is_cuda_build"):
        why = f"this TensorFlow has no CUDA; {_INSTALL} in a new environment"
    elif not _loads(_DRIVER):
        why = (
            f"{_DRIVER} of the NVIDIA driver cannot be loaded; install the driver, or start the container with the GPU "
            "(docker run --gpus all)"
        )
    else:
        why = (
            f"it needs CUDA {cuda} and cuDNN {cudnn}, and a driver for them; {_INSTALL}, and if that does not help, "
            "TF_CPP_MIN_LOG_LEVEL=0 python -c 'import tensorflow as tf; tf.config.list_physical_devices()' says what "
            "it misses"
        )
    return f"; warning: there is an NVIDIA GPU that TensorFlow cannot use: {why}"


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
