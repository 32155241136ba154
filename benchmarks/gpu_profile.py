"""Measures how long a GPU computes, with JAX's profiler."""

import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path


def profiled(call: Callable[[], object]) -> float | None:
    """Returns the seconds that the GPU computes during a call, or None if the profile shows no GPU."""
    import jax

    options = jax.profiler.ProfileOptions()
    options.host_tracer_level = options.python_tracer_level = 0
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, profiler_options=options):
            call()
        [file] = Path(folder).rglob("*.xplane.pb")
        return busy_seconds(jax.profiler.ProfileData.from_file(str(file)).planes)


def busy_seconds(planes: Iterable) -> float | None:
    """Returns the seconds in which at least one stream of a GPU is busy, or None if no plane belongs to a GPU."""
    spans = [
        (event.start_ns, event.start_ns + event.duration_ns)
        for plane in planes
        if plane.name.startswith("/device:GPU")
        for line in plane.lines
        if line.name.startswith("Stream")  # other lines show the same time by operation
        for event in line.events
    ]
    busy, end = 0.0, 0.0
    for start, stop in sorted(spans):
        busy += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return busy / 1e9 if spans else None
