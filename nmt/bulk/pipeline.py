"""The pipeline: shards into pieces, pieces through the model, translated pieces into shards, shards into a report.

Each step may run twice for the same element, as runners repeat what failed. A step writes whole files under names that
stand for their content, so it finds or replaces what an earlier attempt has written.
"""

import json
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import apache_beam as beam
from apache_beam.ml.inference.base import ModelHandler, RunInference
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions, TypeOptions, WorkerOptions

from ..errors import UserError
from . import storage
from .job import Job
from .lines import read_lines, split
from .model import Model, translate_lines
from .pieces import Piece, Report, Shard, add, in_order, read_piece, write_piece


def run(job: Job, shards: list[Shard], options: PipelineOptions) -> Report:
    """Translates shards and returns the report.

    Raises:
        Exception: A step failed at every attempt of the runner. Translated pieces stay for the next run.
    """
    # Without it, the DirectRunner looks for Prism, another program, and downloads it. The pipeline has no triggers.
    options.view_as(TypeOptions).allow_unsafe_triggers = True
    pipeline = beam.Pipeline(options=options)
    build(pipeline, job, shards)
    path = job.own("report.json")  # not every runner returns values
    storage.remove(path)
    state = pipeline.run().wait_until_finish()
    if not storage.exists(path):
        raise UserError(f"the job ended as {state} without a report; run the same command again")
    return Report(**storage.read_json(path))


def build(pipeline: beam.Pipeline, job: Job, shards: list[Shard]) -> None:
    """Adds the steps to a pipeline."""
    pieces, damaged = (
        pipeline
        | "Shards" >> beam.Create(shards, reshuffle=True)
        | "Find pieces" >> beam.FlatMap(find_pieces, job.piece_lines).with_exception_handling(exc_class=storage.DAMAGED)
    )
    written = (
        pieces
        | "Spread" >> beam.Reshuffle()
        | "Translate" >> RunInference(Handler(job))
        | "By shard" >> beam.GroupBy(lambda piece: piece.shard)
        | "Put together" >> beam.Map(write_shard, job.started)
    )
    _ = (
        (written, damaged | "Left out" >> beam.MapTuple(left_out))
        | "All reports" >> beam.Flatten()
        | "Add up" >> beam.CombineGlobally(add)
        | "Report" >> beam.Map(lambda report: storage.write_json(job.own("report.json"), job.own(), asdict(report)))
    )


def find_pieces(shard: Shard, lines: int) -> Iterator[Piece]:
    """Yields the pieces of a shard."""
    with storage.open_text(shard.source) as file:
        yield from (Piece(shard, extent) for extent in split(file, lines))


class Handler(ModelHandler[Piece, Piece, Model]):
    """Translates pieces with an export and writes them. Each is a batch by itself."""

    def __init__(self, job: Job):
        super().__init__(min_batch_size=1, max_batch_size=1)
        self._job = job

    def load_model(self) -> Model:
        return Model(self._job.export, self._job.model_timeout, storage.local)

    def run_inference(self, batch: Sequence[Piece], model: Model, inference_args: Any = None) -> Iterable[Piece]:
        for piece in batch:
            if piece.extent.lines and not storage.exists(piece.path):
                translate(piece, model, self._job.max_bytes)
        return batch


def translate(piece: Piece, model: Model, max_bytes: int) -> None:
    """Translates a piece and writes its file."""
    began = time.time()
    with storage.open_text(piece.shard.source) as file:
        lines = read_lines(file, piece.extent, max_bytes)
    start = time.perf_counter()
    results = translate_lines(model, lines)
    work = {"began": began, "ended": time.time(), "model_seconds": time.perf_counter() - start}
    with storage.write_whole(piece.path, piece.shard.pieces) as file:
        write_piece(file, results, work)


def write_shard(found: tuple[Shard, Iterable[Piece]], started: float) -> Report:
    """Puts the pieces of a shard together; returns its report in a job that started at this time."""
    shard, pieces = found
    reports, failed = [Report(shards=1)], []
    with storage.write_whole(shard.target, shard.pieces) as file:
        for piece in in_order(pieces):
            with storage.open_text(piece.path) as translated:
                report, without = read_piece(translated, piece, started)
                shutil.copyfileobj(translated, file)
            reports.append(report)
            failed += without
        if [storage.state(each) for each in storage.find(shard.source)] != [shard.state]:
            raise RuntimeError(f"{shard.source} changed while it was translated")
        for other in storage.find(shard.record.replace(shard.digest, "?" * len(shard.digest))) + storage.find(
            shard.failed
        ):
            storage.remove(other.path)  # of an earlier translation
        if failed:
            with storage.write_whole(shard.failed, shard.pieces) as listed:
                listed.writelines(json.dumps(each).encode() + b"\n" for each in failed)
        storage.write_json(shard.record, shard.pieces, {"source": shard.source, "state": shard.state})
    return add(reports)


def left_out(shard: Shard, error: tuple[type, str, list[str]]) -> Report:
    """Returns the report of a shard that cannot be read."""
    return Report(unreadable={shard.source: error[2][-1].strip()})


def pipeline_options(words: list[str]) -> PipelineOptions:
    """Returns the options of Beam.

    Raises:
        UserError: One is unknown. Only a runner on this machine can tell; others have options of their own.
    """
    options = PipelineOptions(words)
    if on_this_machine(options):
        known, given = options.get_all_options(), options.get_all_options(retain_unknown_options=True)
        if unknown := sorted(given.keys() - known.keys()):
            raise UserError(f"--{unknown[0]} is neither an option of this program nor of Beam; see --help")
        if options.view_as(WorkerOptions).default_sdk_harness_log_level is None:
            options.view_as(WorkerOptions).default_sdk_harness_log_level = "ERROR"
    return options


def on_this_machine(options: PipelineOptions) -> bool:
    """Returns whether the runner is Beam's DirectRunner."""
    return (options.view_as(StandardOptions).runner or "DirectRunner").endswith("DirectRunner")
