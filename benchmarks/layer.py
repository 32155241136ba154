"""Times normalization layers on one backend and prints tables.

    python benchmarks/layer.py                      # TensorFlow; takes some minutes
    python benchmarks/layer.py --shapes 4096x1024 --modes eager xla --dtypes float32
    python benchmarks/layer.py --operations gate groups --json LAYER.json
    KERAS_BACKEND=jax python benchmarks/layer.py --json JAX.json
    KERAS_BACKEND=torch python benchmarks/layer.py --json TORCH.json

For each operation, shape, dtype, mode and pass, all implementations run in turn for many rounds. The operations are the
norm, the gated norm, and the norm in eight groups. For the last two, Keras's RMSNormalization is composed with other
operations, and so is "rmsnorm_tf, apart". On JAX and PyTorch, there is only the norm, beside a plain one and
`torch.nn.functional.rms_norm`, on a GPU if the backend finds one; a turn ends when the device has the result.

A cell of the tables has the time over that of Keras's layer; after the slash, that of LayerNorm over the same or,
without LayerNorm, ours over that of each other.
"""

import functools
import itertools
import os
from statistics import median

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tables
from runner import parser_of, seconds_of
from tables import KERAS, LAYERNORM, OURS

from rmsnorm_tf import RMSNormalization

SHAPES = ["80x1024", "4096x1024", "16384x1024", "2048x4096"]
DTYPES = ["float32", "bfloat16"]
MODES = {"tensorflow": ["eager", "tf.function", "xla"], "jax": ["jit"], "torch": ["eager", "torch.compile"]}
PASSES = ["forward", "forward+backward"]
OPERATIONS = ["norm", "gate", "groups"]
GROUPS = 8


def layers(dtype):
    """Returns our layer and that of Keras."""
    return {OURS: RMSNormalization(dtype=dtype), KERAS: keras.layers.RMSNormalization(dtype=dtype)}


def implementations(operation, shape, dtype):
    """Returns by name a layer and a function of x and another tensor, which returns a list of results."""
    import tensorflow as tf

    ours, keras_layer = layers(dtype).values()
    if operation == "norm":
        found = {OURS: ours, KERAS: keras_layer, LAYERNORM: keras.layers.LayerNormalization(dtype=dtype)}
        return {name: (layer, lambda x, _, layer=layer: [layer(x)]) for name, layer in found.items()}
    if operation == "gate":
        functions = {OURS: (ours, lambda x, other: [ours(x, gate=other)])}

        def apart(x, other, layer):
            return [layer(x) * keras.ops.silu(other)]

    else:
        together = RMSNormalization(groups=GROUPS, dtype=dtype)
        functions = {OURS: (together, lambda x, _: [together(x)])}
        ours, keras_layer = layers(dtype).values()

        def apart(x, _, layer):
            return [tf.reshape(layer(tf.reshape(x, (-1, GROUPS, shape[-1] // GROUPS))), shape)]

    return functions | {
        f"{OURS}, apart": (ours, functools.partial(apart, layer=ours)),
        KERAS: (keras_layer, functools.partial(apart, layer=keras_layer)),
    }


def tensorflow_calls(operation, shape, dtype, mode, passes):
    """Returns a function that runs one pass, for each implementation."""
    import tensorflow as tf

    tensors = [tf.cast(a, dtype) for a in arrays(shape)]
    wrap = {
        "eager": lambda function: function,
        "tf.function": tf.function,
        "xla": functools.partial(tf.function, jit_compile=True),
    }[mode]
    functions = implementations(operation, shape, dtype)
    return {name: tensorflow_call(*function, *tensors, wrap, passes) for name, function in functions.items()}


def tensorflow_call(layer, function, x, other, wrap, passes):
    import tensorflow as tf

    function(x, other)  # builds the layer

    def forward(x, other):
        return function(x, other)

    def both(x, other):
        with tf.GradientTape() as tape:
            tape.watch([x, other])
            results = function(x, other)
        sources, upstream = [x, other, *layer.trainable_variables], [other, x][: len(results)]
        # The results too, so that no compiler removes them.
        return results, tape.gradient(results, sources, upstream, unconnected_gradients="none")

    call = wrap(forward if passes == "forward" else both)
    return lambda: call(x, other)


def jax_calls(_, shape, dtype, mode, passes):
    """Returns a function that runs one pass, for each implementation."""
    import jax
    import jax.numpy as jnp

    def plain(scale, x):
        wide = x.astype(jnp.float32)
        y = wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6) * scale
        return y.astype(x.dtype)

    x, dy = (jnp.asarray(each, dtype) for each in arrays(shape))
    functions, scales = {"plain JAX": plain}, {"plain JAX": jnp.ones(shape[-1])}
    for name, layer in layers(dtype).items():
        layer.build(shape)
        functions[name] = lambda scale, x, layer=layer: layer.stateless_call([scale], [], x)[0]
        scales[name] = jnp.ones(shape[-1], layer.scale.dtype)
    calls = {}
    for name, function in functions.items():
        call, given = jax.jit(function), (scales[name], x)
        if passes != "forward":
            call = jax.jit(lambda scale, x, dy, f=function: jax.vjp(f, scale, x)[1](dy))
            given = (*given, dy)
        calls[name] = lambda call=call, given=given: jax.block_until_ready(call(*given))
    return calls


def torch_calls(_, shape, dtype, mode, passes):
    """Returns a function that runs one pass, for each implementation."""
    import torch

    torch.compiler.reset()  # it stops compiling after eight variants of a function
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, dy = (torch.tensor(each, dtype=getattr(torch, dtype), device=device) for each in arrays(shape))
    scale = torch.ones(shape[-1], dtype=x.dtype, device=device, requires_grad=True)
    x.requires_grad_()

    def plain(x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6) * scale).to(x.dtype)

    def call(function, sources):
        with torch.set_grad_enabled(passes != "forward"):
            y = function(x)
        if passes != "forward":
            torch.autograd.grad(y, sources, dy)
        if device != "cpu":
            torch.cuda.synchronize()

    functions = {"torch rms_norm": lambda x: torch.nn.functional.rms_norm(x, shape[-1:], scale, 1e-6)}
    functions |= {"plain PyTorch": plain, **layers(dtype)}
    calls = {}
    for name, function in functions.items():
        sources = [x, scale]
        if name in (OURS, KERAS):
            function.build(shape)
            sources = [x, *(weight for weight in function.to(device).parameters() if weight.requires_grad)]
        function = torch.compile(function) if mode == "torch.compile" else function
        calls[name] = functools.partial(call, function, sources)
    return calls


@functools.cache
def arrays(shape):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape, np.float32) for _ in range(2)]


def main():
    backend = keras.backend.backend()
    calls_of = {"tensorflow": tensorflow_calls, "jax": jax_calls, "torch": torch_calls}[backend]
    parser = parser_of(__doc__, dtypes=DTYPES, modes=MODES[backend], passes=PASSES, rounds=15)
    parser.add_argument("--operations", nargs="+", default=["norm"], choices=OPERATIONS)
    parser.add_argument("--shapes", nargs="+", default=SHAPES, help="rows x units")
    options = parser.parse_args()
    if backend != "tensorflow" and options.operations != ["norm"]:
        parser.error(f"--operations other than norm need TensorFlow; the backend is {backend}")
    shapes = [tuple(map(int, shape.split("x"))) for shape in options.shapes]
    figures = []
    settings = (options.operations, options.dtypes, shapes, options.modes, options.passes)
    for operation, dtype, shape, mode, passes in itertools.product(*settings):
        calls = calls_of(operation, shape, dtype, mode, passes)
        seconds = seconds_of(calls, options.rounds, seconds_per_turn=0.03)
        cell = {"operation": operation, "shape": list(shape), "dtype": dtype, "mode": mode, "passes": passes}
        print(*cell.values(), {name: f"{1e3 * median(each):.3f} ms" for name, each in seconds.items()}, flush=True)
        figures.append({**cell, "seconds": seconds})
    tables.publish(options, "layer", figures)


if __name__ == "__main__":
    main()
