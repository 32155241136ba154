"""Times the layer on JAX or PyTorch beside Keras's own layer and the backend's own norm, and prints a table.

    KERAS_BACKEND=jax python benchmarks/backends.py --json JAX.json
    KERAS_BACKEND=torch python benchmarks/backends.py --json TORCH.json
    python benchmarks/backends.py --tables JAX.json TORCH.json    # what docs/backends.md has

For TensorFlow, benchmarks/layer.py does this. On JAX everything is under `jax.jit`, beside a plain function; on
PyTorch, eager and under `torch.compile`, beside `torch.nn.RMSNorm`. All run in turn for many rounds.
"""

import argparse
import json
import statistics
from pathlib import Path

import keras
import numpy as np

from rmsnorm_tf import RMSNormalization

SHAPES = ["80x1024", "4096x1024", "2048x4096"]
DTYPES = ["float32", "bfloat16"]
OURS, KERAS = "rmsnorm_tf", "keras RMSNormalization"


def layers(size, dtype):
    """Returns our layer and that of Keras, built."""
    found = {OURS: RMSNormalization(dtype=dtype), KERAS: keras.layers.RMSNormalization(dtype=dtype)}
    for layer in found.values():
        layer.build((None, size))
    return found


def calls_in_jax(rows, size, dtype):
    """Returns calls of the forward pass and of both passes, by mode, pass and name."""
    import jax
    import jax.numpy as jnp

    def plain(scale, x):
        wide = x.astype(jnp.float32)
        y = wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6) * scale
        return y.astype(x.dtype)

    x, dy = (jnp.asarray(a, dtype) for a in np.random.default_rng(0).normal(size=(2, rows, size)))
    functions = {
        name: lambda s, x, layer=layer: layer.stateless_call([s], [], x)[0]
        for name, layer in layers(size, dtype).items()
    }
    calls = {}
    for name, function in {**functions, "plain JAX": plain}.items():
        scale = jnp.ones(size, layers(size, dtype)[KERAS].scale.dtype if name == KERAS else jnp.float32)
        forward = jax.jit(function)
        both = jax.jit(lambda s, x, dy, f=function: jax.vjp(f, s, x)[1](dy))
        calls["jit", "forward", name] = lambda f=forward, s=scale: f(s, x).block_until_ready()
        calls["jit", "both", name] = lambda f=both, s=scale: jax.block_until_ready(f(s, x, dy))
    return calls


def calls_in_torch(rows, size, dtype):
    """Returns calls of the forward pass and of both passes, by mode, pass and name."""
    import torch

    torch.compiler.reset()  # it stops compiling after eight variants of a function
    kind = getattr(torch, dtype)
    x, dy = (torch.tensor(a, dtype=kind) for a in np.random.default_rng(0).normal(size=(2, rows, size)))
    needs_gradient = x.clone().requires_grad_()
    modules = {**layers(size, dtype), "torch.nn.RMSNorm": torch.nn.RMSNorm(size, eps=1e-6, dtype=kind)}
    calls = {}
    for name, module in modules.items():
        weights = [weight for weight in module.parameters() if weight.requires_grad]
        for mode, function in (("eager", module), ("torch.compile", torch.compile(module))):

            def forward(f=function):
                with torch.no_grad():
                    return f(x)

            def both(f=function, weights=weights):
                return torch.autograd.grad(f(needs_gradient), [needs_gradient, *weights], dy)

            calls[mode, "forward", name], calls[mode, "both", name] = forward, both
    return calls


def measure(shapes, dtypes, rounds):
    """Returns the seconds of each round."""
    from runner import seconds_of  # beside this script

    make = {"jax": calls_in_jax, "torch": calls_in_torch}[keras.backend.backend()]
    figures = []
    for shape in shapes:
        for dtype in dtypes:
            calls = make(*map(int, shape.split("x")), dtype)
            for mode, direction in dict.fromkeys(key[:2] for key in calls):
                group = {key[2]: call for key, call in calls.items() if key[:2] == (mode, direction)}
                seconds = seconds_of(group, rounds)
                figures.append({"shape": shape, "dtype": dtype, "mode": mode, "pass": direction, "seconds": seconds})
    return figures


def table(found):
    """Returns a Markdown table: our milliseconds, and our time over that of each other."""
    others = [name for name in found["figures"][0]["seconds"] if name != OURS]
    heads = ["shape", "dtype", "mode", "pass", "ms", *(f"over {name}" for name in others)]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for row in found["figures"]:
        seconds = row["seconds"]
        ratios = [statistics.median(a / b for a, b in zip(seconds[OURS], seconds[o], strict=True)) for o in others]
        cells = [row["shape"], row["dtype"], row["mode"], row["pass"], f"{1e3 * statistics.median(seconds[OURS]):.2f}"]
        lines.append(f"| {' | '.join([*cells, *(f'{r:.2f}' for r in ratios)])} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", nargs="+", default=SHAPES, metavar="ROWSxSIZE")
    parser.add_argument("--dtypes", nargs="+", default=DTYPES)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--tables", nargs="+", metavar="FILE")
    args = parser.parse_args()
    if args.tables:
        for path in args.tables:
            print(table(json.loads(Path(path).read_text())), end="\n\n")
        return
    backend = __import__(keras.backend.backend())
    versions = {module.__name__: module.__version__ for module in (backend, keras, np)}
    found = {"benchmark": "backends", "versions": versions, "figures": measure(args.shapes, args.dtypes, args.rounds)}
    print(table(found))
    if args.json:
        Path(args.json).write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
