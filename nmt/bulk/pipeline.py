"""Builds and runs the pipeline: splits shards, translates chunks, joins shards, reports.

Each step may run twice for the same element, as runners repeat what failed. A step writes whole
files under names that stand for their content, so it finds what an earlier attempt has written.
"""

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict

import apache_beam as beam
from apache_beam.options.pipeline_options import (
    PipelineOptions,
    StandardOptions,
    TypeOptions,
    WorkerOptions,
)
from apache_beam.utils.shared import Shared

from ..errors import UserError
from . import storage
from .chunks import Chunk, Report, Shard, add, read_chunk, read_lines, split, write_chunk
from .job import Job
from .model import Model, translate_lines


def run(job: Job, shards: list[Shard], options: PipelineOptions) -> Report:
    # Without it, the DirectRunner looks for Prism, another program, and downloads it. The pipeline
    # has no triggers.
    options.view_as(TypeOptions).allow_unsafe_triggers = True
    report = job.own("report.json")  # not every runner returns values
    whole_error = job.own("error.txt")
    for path in (report, whole_error):
        storage.clear(path)
    try:
        pipeline = beam.Pipeline(options=options)
        build(pipeline, job, shards)
        state = pipeline.run().wait_until_finish()
    except Exception as error:
        with suppress(Exception), storage.write_whole(whole_error, job.own()) as file:
            file.write(f"{error}\n".encode())
        last = (str(error).strip().splitlines() or [""])[-1]
        raise UserError(
            f"the job failed: {last}; see {whole_error}. The same command goes on with the rest"
        ) from None
    if not storage.exists(report):
        raise UserError(f"the job ended as {state} without a report; run the same command again")
    with storage.usable(report):
        return Report(**storage.read_json(report))


def build(pipeline: beam.Pipeline, job: Job, shards: list[Shard]) -> None:
    chunks, damaged = (
        pipeline
        | "Shards" >> beam.Create(shards, reshuffle=True)
        | "Find chunks"
        >> beam.FlatMap(find_chunks, job.chunk_lines).with_exception_handling(
            exc_class=storage.DAMAGED
        )
    )
    written = (
        chunks
        | "Spread" >> beam.Reshuffle()
        | "Translate" >> beam.ParDo(Translate(job))
        | "By shard" >> beam.GroupBy(lambda chunk: chunk.shard)
        | "Put together" >> beam.Map(write_shard, job.run)
    )
    left_out = damaged | beam.MapTuple(
        lambda shard, error: Report(unreadable={shard.source: error[2][-1].strip()})
    )
    _ = (
        (written, left_out)
        | "All reports" >> beam.Flatten()
        | "Add up" >> beam.CombineGlobally(add)
        | "Report"
        >> beam.Map(
            lambda report: storage.write_json(job.own("report.json"), job.own(), asdict(report))
        )
    )


def find_chunks(shard: Shard, lines: int) -> Iterator[Chunk]:
    with storage.open_text(shard.source) as file:
        # An empty text has one.
        yield from (Chunk(shard, *each) for each in list(split(file, lines)) or [(0, 0, 0)])


class Translate(beam.DoFn):
    """Translates chunks with an export and writes them. The threads of a worker share a model."""

    def __init__(self, job: Job):
        self._job = job
        self._shared = Shared()

    def setup(self) -> None:
        self._model = self._shared.acquire(
            lambda: Model(self._job.export, self._job.model_timeout, storage.local)
        )

    def process(self, chunk: Chunk) -> Iterator[Chunk]:
        if not storage.exists(chunk.path):
            with storage.open_text(chunk.shard.source) as file:
                lines = read_lines(file, chunk.offset, chunk.lines, self._job.max_bytes)
            require_unchanged(chunk.shard)
            results = translate_lines(self._model, lines)
            with storage.write_whole(chunk.path, chunk.shard.own("chunks")) as file:
                write_chunk(file, results, self._job.run)
        yield chunk


def write_shard(found: tuple[Shard, Iterable[Chunk]], run: str) -> Report:
    """Puts the chunks of a shard together; returns its report for a run of the job."""
    shard, chunks = found
    reports = [Report(shards=1)]
    failed = []
    aside = shard.own("chunks")
    failed_lines = shard.own("failed", ".jsonl")
    with storage.write_whole(shard.target, aside) as file:
        for chunk in sorted(chunks, key=lambda chunk: chunk.first):
            with storage.open_text(chunk.path) as translated:
                report, without = read_chunk(translated, chunk, run)
                shutil.copyfileobj(translated, file)
            reports.append(report)
            failed += without
        require_unchanged(shard)
        storage.clear(failed_lines)  # of an earlier translation, as the records
        for record in storage.find(shard.own("texts", f".{'?' * len(shard.digest)}.json")):
            storage.remove(record.path)
        if failed:
            with storage.write_whole(failed_lines, aside) as listed:
                listed.writelines(json.dumps(each).encode() + b"\n" for each in failed)
        storage.write_json(shard.record, aside, {"source": shard.source, "state": shard.state})
    return add(reports)


def require_unchanged(shard: Shard) -> None:
    """Raises `RuntimeError` if a text is no longer the one that the job began with."""
    if [storage.state(each) for each in storage.find(shard.source)] != [shard.state]:
        raise RuntimeError(f"{shard.source} changed while it was translated")


def pipeline_options(words: list[str]) -> PipelineOptions:
    """Returns the options of Beam. Only a runner on this machine can tell which are unknown."""
    options = PipelineOptions(words)
    if on_this_machine(options):
        given = options.get_all_options(retain_unknown_options=True)
        unknown = sorted(given.keys() - options.get_all_options().keys())
        if unknown:
            raise UserError(
                f"--{unknown[0]} is neither an option of this program nor of Beam; see --help"
            )
        if options.view_as(WorkerOptions).default_sdk_harness_log_level is None:
            options.view_as(WorkerOptions).default_sdk_harness_log_level = "ERROR"
    return options


def on_this_machine(options: PipelineOptions) -> bool:
    """Returns whether the runner is Beam's DirectRunner."""
    return (options.view_as(StandardOptions).runner or "DirectRunner").endswith("DirectRunner")
