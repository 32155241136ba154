"""Times the compiled programs of the layer and of a model's gradient on a GPU, and prints tables.

    python benchmarks/gpu_programs.py build/gpu                 # needs TensorFlow and no GPU
    python benchmarks/gpu.py build/gpu --json build/gpu.json    # needs JAX on the GPU

A `tf.function(jit_compile=True)` is the same XLA program on every machine. So one machine with
TensorFlow makes the programs, and another measures them with JAX, in at most eight minutes. The
programs of a group run in turn, the first one twice, to show the noise. Inputs take turns to exceed
the cache. "busy" is what the GPU computes during a call, from JAX's profiler, without launches;
"difference" is the largest relative difference of the outputs from TensorFlow's on the CPU.
"""

import dataclasses
import json
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import jax
import numpy as np
from gpu_values import array, difference, summary
from jax import export
from jax.extend import mlir
from jax.extend.mlir.dialects import stablehlo
from runner import parser_of, repeats_of, seconds_of, surroundings, write_log
from tables import gpu

_SECONDS_PER_TURN = 0.02
_MOST_CALLS_PER_TURN = 200
_CALLS_PROFILED = 10
_CACHE_BYTES = 2**27  # more than a GPU's cache
_MOST_COPIES = 16


def main() -> None:
    """Measures group by group, and writes the figures after each."""
    begun = time.monotonic()
    parser = parser_of(__doc__, rounds=15, seconds=420)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="what gpu_programs.py wrote")
    options = parser.parse_args()
    if not (path := options.folder / "index.json").exists():
        parser.error(f"{options.folder} holds no programs; run gpu_programs.py {options.folder}")
    index = json.loads(path.read_text())
    groups = {}
    for program in index["programs"]:
        groups.setdefault(json.dumps(program["group"]), []).append(program)
    versions = {**index["versions"], **surroundings()["versions"]}
    measured = []
    for group, programs in groups.items():
        if time.monotonic() - begun > options.seconds:
            print(f"{len(groups) - len(measured)} groups are left out: no time", flush=True)
            break
        kinds = _measure_group(programs, options.folder, options.rounds)
        measured.append({"group": json.loads(group), "kinds": kinds})
        device = jax.devices()[0].device_kind
        write_log(options.json, "gpu", device=device, versions=versions, groups=measured)
        print(group)
        for kind, found in kinds.items():
            milliseconds = f"{1e3 * np.median(found['rounds']):.4f} ms"
            print(f"  {kind}: {milliseconds}, difference {found['difference']:.0e}", flush=True)
    for lines in gpu({"groups": measured}):
        print("", *lines, sep="\n")


def _measure_group(programs, folder, rounds):
    """Runs programs in turn and returns the measurements of each kind."""
    codes = [(folder / program["file"]).read_bytes() for program in programs]
    with ThreadPoolExecutor() as pool:
        functions = list(pool.map(_load, programs, codes))
    calls = {}
    measured = {}
    for program, function in zip(programs, functions, strict=True):
        arrays = [jax.device_put(array(each, seed)) for seed, each in enumerate(program["inputs"])]
        found = [summary(output) for output in jax.device_get(function(*arrays))]
        measured[program["kind"]] = {"difference": difference(program["expected"], found)}
        calls[program["kind"]] = function, _copies(arrays)
    first = programs[0]["kind"]
    calls[f"{first} again"] = calls[first]
    measured[f"{first} again"] = dict(measured[first])
    for kind, call in calls.items():
        count = min(repeats_of(partial(_run, *call, 1), _SECONDS_PER_TURN), _MOST_CALLS_PER_TURN)
        measured[kind] |= {"calls": count, "busy": _busy(call)}
    turns = {kind: partial(_run, *call, measured[kind]["calls"]) for kind, call in calls.items()}
    for kind, seconds in seconds_of(turns, rounds).items():
        measured[kind]["rounds"] = [each / measured[kind]["calls"] for each in seconds]
    return measured


def _load(program, hlo):
    """Returns a compiled function of a program's inputs and weights, from its HLO."""
    inputs, outputs = map(_shapes, (program["inputs"], program["outputs"]))

    # JAX can call exported functions only. So export one with the same inputs and outputs, then
    # replace its code.
    def stand_in(*arrays):
        return [jax.numpy.zeros(output.shape, output.dtype) for output in outputs]

    exported = export.export(jax.jit(stand_in, keep_unused=True))(*inputs)
    code = mlir.serialize_portable_artifact(
        mlir.hlo_to_stablehlo(hlo), stablehlo.get_current_version()
    )
    exported = dataclasses.replace(exported, mlir_module_serialized=code)
    return jax.jit(exported.call).lower(*inputs).compile()


def _shapes(described):
    return [jax.ShapeDtypeStruct(each["shape"], each["dtype"]) for each in described]


def _copies(arrays):
    """Returns the arrays and enough copies of them to exceed the cache."""
    found = [arrays]
    size = sum(each.nbytes for each in arrays)
    while len(found) < _MOST_COPIES and len(found) * size <= _CACHE_BYTES:
        found.append(list(map(jax.numpy.copy, arrays)))
    return found


def _run(function, inputs, count):
    """Makes calls without waiting between them, then waits."""
    for number in range(count):
        outputs = function(*inputs[number % len(inputs)])
    jax.block_until_ready(outputs)


def _busy(call):
    """Returns the seconds that the GPU computes during one call, or None without a GPU."""
    if jax.devices()[0].platform != "gpu":
        return None
    options = jax.profiler.ProfileOptions()
    options.host_tracer_level = options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            _run(*call, _CALLS_PROFILED)
        [file] = Path(folder).rglob("*.xplane.pb")
        seconds = busy_seconds(jax.profiler.ProfileData.from_file(str(file)).planes)
    return None if seconds is None else seconds / _CALLS_PROFILED


def busy_seconds(planes: Iterable) -> float | None:
    """Returns the seconds in which a stream of a GPU is busy, or None without a GPU."""
    lines = [
        line for plane in planes if plane.name.startswith("/device:GPU") for line in plane.lines
    ]
    streams = [
        line for line in lines if line.name.startswith("Stream")
    ]  # others say it by operation
    events = [event for stream in streams for event in stream.events]
    spans = [(event.start_ns, event.start_ns + event.duration_ns) for event in events]
    busy = 0.0
    end = 0.0
    for start, stop in sorted(spans):
        busy += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return busy / 1e9 if spans else None


if __name__ == "__main__":
    main()
