"""Times the layer on JAX or PyTorch beside Keras's own layer and the backend's own norm, and prints a table.

    KERAS_BACKEND=jax python benchmarks/backends.py --json JAX.json
    KERAS_BACKEND=torch python benchmarks/backends.py --device cuda --json TORCH.json

For TensorFlow, benchmarks/layer.py does this. On JAX everything is under `jax.jit`, beside a plain norm; on PyTorch,
eager and under `torch.compile`, beside `torch.nn.functional.rms_norm` and a plain norm. All run in turn for many
rounds, on a GPU if the backend finds one. A turn ends when the device has the result.
"""

import statistics
import sys
from pathlib import Path

import keras
import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.runner import parser_of, ratio, seconds_of, write_log
from benchmarks.tables import KERAS, OURS, markdown
from rmsnorm_tf import RMSNormalization

SHAPES = ["4096x1024", "16384x8192", "80x1024", "2048x4096"]  # the most wanted first
DTYPES = ["float32", "bfloat16"]


def layers(size, dtype):
    """Returns our layer and that of Keras, built."""
    found = {OURS: RMSNormalization(dtype=dtype), KERAS: keras.layers.RMSNormalization(dtype=dtype)}
    for layer in found.values():
        layer.build((None, size))
    return found


def calls_in_jax(rows, size, dtype, device):
    """Returns calls of the forward pass and of both passes, by mode, pass and name."""
    import jax
    import jax.numpy as jnp

    def plain(scale, x):
        wide = x.astype(jnp.float32)
        y = wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6) * scale
        return y.astype(x.dtype)

    place = jax.devices(device)[0] if device else jax.devices()[0]
    drawn = np.random.default_rng(0).standard_normal((2, rows, size), np.float32)
    x, dy = (jax.device_put(jnp.asarray(a, dtype), place) for a in drawn)
    built, calls = layers(size, dtype), {}
    functions = {name: lambda s, x, layer=layer: layer.stateless_call([s], [], x)[0] for name, layer in built.items()}
    for name, function in {**functions, "plain JAX": plain}.items():
        kind = built[KERAS].scale.dtype if name == KERAS else jnp.float32
        scale = jax.device_put(jnp.ones(size, kind), place)
        forward = jax.jit(function)
        both = jax.jit(lambda s, x, dy, f=function: jax.vjp(f, s, x)[1](dy))
        calls["jit", "forward", name] = lambda f=forward, s=scale: jax.block_until_ready(f(s, x))
        calls["jit", "both", name] = lambda f=both, s=scale: jax.block_until_ready(f(s, x, dy))
    return calls


def calls_in_torch(rows, size, dtype, device):
    """Returns calls of the forward pass and of both passes, by mode, pass and name."""
    import torch

    torch.compiler.reset()  # it stops compiling after eight variants of a function
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    kind = getattr(torch, dtype)
    drawn = np.random.default_rng(0).standard_normal((2, rows, size), np.float32)
    x, dy = (torch.tensor(a, dtype=kind, device=device) for a in drawn)
    needs_gradient, calls = x.clone().requires_grad_(), {}

    def wait():
        if device != "cpu":
            torch.cuda.synchronize(device)

    scale = torch.ones(size, dtype=kind, device=device, requires_grad=True)

    def plain(x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6) * scale).to(x.dtype)

    found = {name: (layer.to(device), list(layer.parameters())) for name, layer in layers(size, dtype).items()}
    found["torch rms_norm"] = (lambda x: torch.nn.functional.rms_norm(x, (size,), scale, 1e-6)), [scale]
    found["plain PyTorch"] = plain, [scale]
    for name, (function, weights) in found.items():
        sources = [needs_gradient, *(weight for weight in weights if weight.requires_grad)]
        for mode, called in (("eager", function), ("torch.compile", torch.compile(function))):

            def forward(f=called):
                with torch.no_grad():
                    f(x)
                wait()

            def both(f=called, sources=sources):
                torch.autograd.grad(f(needs_gradient), sources, dy)
                wait()

            calls[mode, "forward", name], calls[mode, "both", name] = forward, both
    return calls


def measure(options):
    """Measures each group of calls, the seconds of its rounds, and yields the figures so far."""
    make = {"jax": calls_in_jax, "torch": calls_in_torch}[keras.backend.backend()]
    figures = []
    for shape in options.shapes:
        for dtype in options.dtypes:
            calls = make(*map(int, shape.split("x")), dtype, options.device)
            for mode, direction in dict.fromkeys(key[:2] for key in calls):
                group = {key[2]: call for key, call in calls.items() if key[:2] == (mode, direction)}
                seconds = seconds_of(group, options.rounds, 0.01)
                figures.append({"shape": shape, "dtype": dtype, "mode": mode, "pass": direction, "seconds": seconds})
                yield figures


def table(figures):
    """Returns the lines of a table: our milliseconds, and our time over that of each other."""
    others = [name for name in figures[0]["seconds"] if name != OURS]
    rows = []
    for figure in figures:
        *place, seconds = figure.values()
        ratios = [f"{ratio(seconds[OURS], seconds[other]):.2f}" for other in others]
        rows.append([*place, f"{1e3 * statistics.median(seconds[OURS]):.2f}", *ratios])
    return markdown(["shape", "dtype", "mode", "pass", "ms", *(f"over {name}" for name in others)], rows)


def main():
    parser = parser_of(__doc__, dtypes=DTYPES, rounds=30)
    parser.add_argument("--shapes", nargs="+", default=SHAPES, metavar="ROWSxSIZE")
    parser.add_argument("--device", help="cpu, gpu (JAX) or cuda (PyTorch); default: a GPU if there is one")
    options = parser.parse_args()
    for figures in measure(options):
        print(table(figures[-1:])[-1], flush=True)
        given = {"device": options.device or "the backend's first"}
        write_log(options.json, "backends", options=given, figures=figures)
    print("", *table(figures), sep="\n")


if __name__ == "__main__":
    main()
