"""Makes the programs that gpu.py measures: serialized HLO, as TensorFlow passes it to XLA.

    python benchmarks/gpu_programs.py build/gpu

Makes, the most wanted first, the gradient of a batch for the RNN at the sizes of the paper with
each norm, the layer, backward and forward, beside Keras's layers, and the gradient for a
Transformer.
"""

import functools
import itertools
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["RMSNORM_TF_SUMS"] = "plain"  # as the layer writes them on a GPU

import keras
import numpy as np
import tensorflow as tf
from gpu_values import array, integers, normal, summary
from runner import parser_of
from tensorflow.compiler.xla.service import hlo_pb2
from updates import ROOT, made_up_work, model_options, patched_baseline

from rmsnorm_tf import RMSNormalization

SHAPES = ["4096x1024", "16384x8192", "80x1024", "80x256", "2048x4096", "16384x1024"]
SIZES = {"embedding_size": 512, "state_size": 1024, "vocabulary": 32000, "batch_size": 80}
_MODELS = {
    "rnn": "RNN, embedding {embedding_size}, state {state_size}",
    "transformer": "Transformer, 3 and 3 layers of {embedding_size}",
}


def main():
    parser = parser_of(__doc__, **SIZES, dtypes=["float32", "bfloat16"], width=30)
    parser.add_argument("to", type=Path, metavar="FOLDER", help="write the programs here")
    parser.add_argument("--shapes", nargs="*", default=SHAPES, help="of the layer's input")
    options = parser.parse_args()
    options.to.mkdir(parents=True, exist_ok=True)
    versions = {module.__name__: module.__version__ for module in (tf, keras, np)}
    groups = itertools.product(options.shapes, options.dtypes, ["backward", "forward"])
    made = [_layer_programs(options.to, *group) for group in groups]
    programs = []
    with tempfile.TemporaryDirectory() as copy:
        sys.path[:0] = [patched_baseline(copy), str(ROOT)]
        if options.width:  # the Transformer comes after two shapes of the layer
            made.insert(0, _gradient_programs(options, "rnn"))
            made.insert(1 + 4 * len(options.dtypes), _gradient_programs(options, "transformer"))
        for program in itertools.chain.from_iterable(made):
            programs.append(program)
            # After each, because a run that is interrupted has programs to measure.
            index = json.dumps({"versions": versions, "programs": programs}, indent=1)
            Path(options.to, "index.json").write_text(index)


def _layer_programs(folder, shape, dtype, passes):
    sizes = [int(size) for size in shape.split("x")]
    layers = {
        "rmsnorm_tf": RMSNormalization(dtype=dtype),
        "keras RMSNormalization": keras.layers.RMSNormalization(dtype=dtype),
        "keras LayerNormalization": keras.layers.LayerNormalization(dtype=dtype),
    }
    group = {"what": "layer", "shape": shape, "dtype": dtype, "passes": passes}
    inputs = [normal(sizes, dtype)] * (1 if passes == "forward" else 2)  # x; x and dy
    for kind, layer in layers.items():
        layer.build((None, *sizes[1:]))
        function = functools.partial(_forward if passes == "forward" else _backward, layer)
        yield _program(folder, group, kind, function, inputs, layer.weights)


def _forward(layer, x):
    return [layer(x)]


def _backward(layer, x, dy):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
    return tape.gradient(y, [x, *layer.trainable_variables], dy)


def _gradient_programs(options, model_type):
    from nmt.config import make_config
    from nmt.text.batches import Batch
    from nmt.training.update import clip_mean, sum_gradients

    def gradient(model, config, *batch):
        summed = sum_gradients(model, Batch(*batch), 0.0, None)
        clipped, norm = clip_mean(summed, config)
        return [summed.cost, norm, *map(tf.convert_to_tensor, clipped)]

    options.model_type = model_type
    work = made_up_work(1, options.batch_size, options.vocabulary, **model_options(options))
    shape = [options.batch_size, options.width]
    side = [integers(shape, options.vocabulary), normal(shape, "float32", 1.0, 0.0)]  # ids and mask
    what = (
        f"gradient of the {_MODELS[model_type].format(**vars(options))}, {options.vocabulary} words"
    )
    group = {
        "what": what,
        "shape": "x".join(map(str, shape)),
        "dtype": "float32",
        "passes": "both passes",
    }
    for kind in ("none", "layernorm", "layernorm, again", "rmsnorm", "prmsnorm"):
        keras.utils.set_random_seed(1)
        config = make_config({**work.options, "layer_normalization_type": kind.partition(",")[0]})
        model = work.build(config)
        function = functools.partial(gradient, model, config)
        yield _program(options.to, group, kind, function, side * 2, model.variables)


def _program(
    folder: Path,
    group: dict,
    kind: str,
    function: Callable[..., list[tf.Tensor]],
    inputs: list[dict],
    weights: list[keras.Variable],
) -> dict:
    """Writes a function as a program; returns its entry in the index, with a summary of what
    TensorFlow computes.

    The program takes the function's inputs and then the variables that it captured.
    """
    specs = [tf.TensorSpec(each["shape"], each["dtype"]) for each in inputs]
    compiled = tf.function(function, jit_compile=True, autograph=False)
    concrete = compiled.get_concrete_function(*specs)
    by_handle = {id(weight.value.handle): weight for weight in weights}
    captured = [by_handle[id(each)] for each in concrete.captured_inputs]
    for weight in captured:
        # Weights must differ, or a wrong order would not be seen.
        deviation = float(np.std(weight)) or 0.1
        inputs = [*inputs, normal(weight.shape, weight.dtype, float(np.mean(weight)), deviation)]
    hlo = _without_copies(compiled.experimental_get_compiler_ir(*specs)(stage="hlo_serialized"))
    arrays = [array(each, seed) for seed, each in enumerate(inputs)]
    for weight, value in zip(captured, arrays[len(specs) :], strict=True):
        weight.assign(value)
    outputs = [output.numpy() for output in concrete(*map(tf.constant, arrays[: len(specs)]))]
    described = "_".join([*group.values(), kind])
    file = "".join(c if c.isalnum() else "_" for c in described) + ".hlo"
    (folder / file).write_bytes(hlo)
    print(f"{file}: {len(hlo)} bytes", flush=True)
    return {
        **{"group": group, "kind": kind, "file": file, "inputs": inputs},
        "outputs": [{"shape": list(each.shape), "dtype": each.dtype.name} for each in outputs],
        "expected": [summary(each) for each in outputs],
    }


def _without_copies(hlo: bytes) -> bytes:
    """Replaces copies by reshapes to the same shape, because JAX cannot convert copies."""
    module = hlo_pb2.HloModuleProto.FromString(hlo)
    for computation in module.computations:
        for instruction in computation.instructions:
            if instruction.opcode == "copy":
                instruction.opcode = "reshape"
    return module.SerializeToString()


if __name__ == "__main__":
    main()
