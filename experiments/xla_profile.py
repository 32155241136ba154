"""What an update compiled by XLA does with its time, as TensorFlow's profiler sees it.

The profile holds when each operation of a compiled program ran, and the programs themselves. An operation is one
instruction of such a program: a matrix product, or a fusion of many small operations into one loop.

TensorFlow writes a profile, but has no public function that reads one. What reads it here are the protocol buffers that
it is written with, which come with TensorFlow in `tensorflow.compiler` and `tensorflow.tsl`.
"""

import math
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf
from tensorflow.compiler.xla.service import hlo_pb2
from tensorflow.tsl.profiler.protobuf import xplane_pb2

PROFILED = ("matmul", "softmax")
_PROGRAMS, _PROCESSOR = "/host:metadata", "/host:CPU"
_OF_OTHERS = ("while", "conditional")  # their time is that of the operations they hold
_SOFTMAX = re.compile("softmax|logsumexp", re.IGNORECASE)


class Operation(NamedTuple):
    """One run of an operation: when, in seconds of the profiler's clock, and what it is a part of."""

    start: float
    end: float
    part: str


def profile(call: Callable[[], object]) -> tuple[float, dict[str, float]]:
    """Returns the seconds that a call takes, and how many of them matrix products take, and the softmax."""
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            start = time.perf_counter()
            call()
            seconds = time.perf_counter() - start
        (path,) = Path(folder).rglob("*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(path.read_bytes())
    spent = seconds_by_part(operations(space))
    return seconds, {part: spent.get(part, 0.0) for part in PROFILED}


def operations(space: xplane_pb2.XSpace) -> Iterator[Operation]:
    """Yields every operation of a profile that ran."""
    planes = {plane.name: plane for plane in space.planes}
    parts = {}
    for program in planes[_PROGRAMS].event_metadata.values():
        module = hlo_pb2.HloProto.FromString(program.stats[0].bytes_value).hlo_module
        name = program.name.rpartition("(")[0]  # what follows is its number
        parts.update({(name, operation): part for operation, part in parts_of(module)})
    processor = planes[_PROCESSOR]
    names = {number: stat.name for number, stat in processor.stat_metadata.items()}
    for line in processor.lines:
        for event in line.events:
            stats = {names[stat.metadata_id]: names.get(stat.ref_value) for stat in event.stats}
            part = parts[stats["hlo_module"], stats["hlo_op"]] if "hlo_op" in stats else None
            if part:
                start = line.timestamp_ns * 1e-9 + event.offset_ps * 1e-12
                yield Operation(start, start + event.duration_ps * 1e-12, part)


def parts_of(module) -> Iterator[tuple[str, str | None]]:
    """Yields the name of every instruction and what it is a part of: `matmul`, `softmax`, `rest`; loops of none.

    A fusion with a matrix product in it is one. It is of the softmax if most of its operations are by their names.
    """
    computations = {computation.id: computation.instructions for computation in module.computations}
    shapes = {each.id: each.shape.dimensions for instructions in computations.values() for each in instructions}

    def within(instruction) -> Iterator:
        yield instruction
        if instruction.opcode == "fusion":
            for computation in instruction.called_computation_ids:
                for each in computations[computation]:
                    yield from within(each)

    def part(instruction) -> str | None:
        if instruction.opcode in _OF_OTHERS:
            return None
        inner = list(within(instruction))
        if any(_is_matrix_product(each, shapes) for each in inner):
            return "matmul"
        named = [each.metadata.op_name for each in inner if each.metadata.op_name and each.operand_ids]
        return "softmax" if 2 * sum(bool(_SOFTMAX.search(name)) for name in named) > len(named) else "rest"

    for instructions in computations.values():
        yield from ((instruction.name, part(instruction)) for instruction in instructions)


def _is_matrix_product(instruction, shapes) -> bool:
    """A product with a single vector is none: it is how sums along the rows are written."""
    if instruction.opcode != "dot":
        return False
    left, right = (shapes[operand] for operand in instruction.operand_ids)
    summed = math.prod(left[axis] for axis in instruction.dot_dimension_numbers.lhs_contracting_dimensions)
    return min(math.prod(left), math.prod(right)) > summed


def seconds_by_part(ran: Iterable[Operation]) -> dict[str, float]:
    """Returns the seconds of each part; those in which several operations run are divided among them.

    >>> seconds_by_part([Operation(0.0, 4.0, "matmul"), Operation(3.0, 5.0, "rest")])
    {'matmul': 3.5, 'rest': 1.5}
    """
    edges = sorted(edge for start, end, part in ran for edge in [(start, 1, part), (end, -1, part)])
    running: dict[str, int] = {}
    spent: dict[str, float] = {}
    before = 0.0
    for at, change, part in edges:
        for each, count in running.items():
            if count:
                spent[each] = spent.get(each, 0.0) + (at - before) * count / sum(running.values())
        running[part] = running.get(part, 0) + change
        before = at
    return spent
