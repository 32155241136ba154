"""The steps of the pipeline. Each one may run twice for the same element, as runners repeat what failed."""

import json
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
from apache_beam.ml.inference.base import ModelHandler

from . import storage
from .export import Export
from .isolation import translate_lines
from .job import Job
from .lines import Fault, read_lines, split
from .pieces import Outcome, Piece, Shard, Work, failed_lines, failures, in_order, read_outcome, write_piece
from .report import Report, of_shard

DONE = "done"  # tag of pieces that are translated already
LINES = "lines"  # tag of the number of lines of each shard
UNREADABLE = "unreadable"  # tag of shards that cannot be read


@dataclass(frozen=True)
class Task:
    """A piece and its sentences."""

    piece: Piece
    lines: list[bytes | Fault]
    began: float


@dataclass(frozen=True)
class Translated:
    """A piece and its translations."""

    task: Task
    results: list[bytes | Fault]
    work: Work


class FindPieces(beam.DoFn):
    """Yields the pieces of a shard; with the tag `LINES`, its name and number of lines."""

    def __init__(self, job: Job):
        self._lines = job.piece_lines

    def process(self, shard: Shard) -> Iterator[Any]:
        try:
            with storage.open_text(shard.source) as file:
                pieces = [Piece(shard, extent) for extent in split(file, self._lines)]
        except storage.DAMAGED as error:
            report = Report(unreadable={shard.source: f"{type(error).__name__}: {error}"})
            yield beam.pvalue.TaggedOutput(UNREADABLE, report)
            return
        yield beam.pvalue.TaggedOutput(LINES, (shard.name, (shard, sum(piece.extent.lines for piece in pieces))))
        yield from pieces


class ReadPiece(beam.DoFn):
    """Yields the task of a piece; with the tag `DONE`, its outcome if it is translated already."""

    def __init__(self, job: Job):
        self._max_bytes = job.max_bytes

    def process(self, piece: Piece) -> Iterator[Any]:
        if storage.exists(piece.path):
            with storage.open_text(piece.path) as file:
                yield beam.pvalue.TaggedOutput(DONE, (piece.shard.name, read_outcome(file, piece)))
            return
        began = time.time()
        with storage.open_text(piece.shard.source) as file:
            yield Task(piece, read_lines(file, piece.extent, self._max_bytes), began)


class Handler(ModelHandler[Task, Translated, Any]):
    """Translates a task with an export. A task is a batch by itself."""

    def __init__(self, job: Job):
        super().__init__(min_batch_size=1, max_batch_size=1)
        self._job = job

    def load_model(self) -> Any:
        return Export(self._job.export, self._job.model_timeout)

    def run_inference(
        self, batch: Sequence[Task], model: Any, inference_args: dict[str, Any] | None = None
    ) -> Iterator[Translated]:
        for task in batch:
            start = time.perf_counter()
            results = translate_lines(model, task.lines)
            yield Translated(task, results, Work(task.began, time.time(), time.perf_counter() - start))

    def get_num_bytes(self, batch: Sequence[Task]) -> int:
        return sum(task.piece.extent.size for task in batch)


class WritePiece(beam.DoFn):
    """Writes a translated piece; yields the name of its shard and its outcome."""

    def process(self, translated: Translated) -> Iterator[tuple[str, Outcome]]:
        piece = translated.task.piece
        with storage.write_whole(piece.path, piece.shard.pieces) as file:
            write_piece(file, translated.results, translated.work)
        yield piece.shard.name, Outcome(piece, failures(translated.results), translated.work)


class WriteShard(beam.DoFn):
    """Puts the pieces of a shard together; yields a report."""

    def __init__(self, job: Job):
        self._started = job.started

    def process(self, grouped: tuple[str, dict[str, Iterable[Any]]]) -> Iterator[Report]:
        found = grouped[1]
        ((shard, lines),) = found[LINES]
        outcomes = in_order(found["outcomes"], lines)
        storage.remove(shard.failed)  # of an earlier translation
        if failed := failed_lines(outcomes):
            with storage.write_whole(shard.failed, shard.pieces) as file:
                file.writelines(json.dumps(each).encode() + b"\n" for each in failed)
        if storage.state(shard.source) != shard.state:
            raise RuntimeError(f"{shard.source} changed while it was translated")
        for other in storage.find(shard.records):
            storage.remove(other.path)
        storage.write_json(shard.record, shard.pieces, {"source": shard.source, "state": shard.state})
        with storage.write_whole(shard.target, shard.pieces) as file:
            for outcome in outcomes:
                with storage.open_text(outcome.piece.path) as piece:
                    read_outcome(piece, outcome.piece)
                    shutil.copyfileobj(piece, file)
        yield of_shard(outcomes, self._started)


class WriteReport(beam.DoFn):
    """Writes the report of the job, which `run` reads: not every runner returns values to it."""

    def __init__(self, job: Job):
        self._job = job

    def process(self, report: Report) -> None:
        storage.write_json(self._job.report, self._job.folder, report.as_dict())
