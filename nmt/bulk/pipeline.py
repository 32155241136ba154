"""The pipeline: shards into pieces, pieces through the model, translated pieces into shards."""

import apache_beam as beam
from apache_beam.ml.inference.base import RunInference
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions, TypeOptions, WorkerOptions

from ..errors import UserError
from . import steps, storage
from .job import Job
from .pieces import Shard
from .report import Report, add


def run(job: Job, shards: list[Shard], options: PipelineOptions) -> Report:
    """Translates shards and returns the report.

    Raises:
        Exception: A step failed at every attempt of the runner. Translated pieces stay for the next run.
    """
    # Without it, the DirectRunner looks for Prism, another program, and downloads it. The pipeline has no triggers.
    options.view_as(TypeOptions).allow_unsafe_triggers = True
    pipeline = beam.Pipeline(options=options)
    build(pipeline, job, shards)
    storage.remove(job.report)
    state = pipeline.run().wait_until_finish()
    if not storage.exists(job.report):
        raise UserError(f"the job ended as {state} without a report; run the same command again")
    return Report(**storage.read_json(job.report))


def build(pipeline: beam.Pipeline, job: Job, shards: list[Shard]) -> None:
    """Adds the steps to a pipeline."""
    found = (
        pipeline
        | "Shards" >> beam.Create(shards, reshuffle=True)
        | "Find pieces" >> beam.ParDo(steps.FindPieces(job)).with_outputs(steps.LINES, steps.UNREADABLE, main="pieces")
    )
    read = (
        found.pieces
        | "Spread" >> beam.Reshuffle()
        | "Read" >> beam.ParDo(steps.ReadPiece(job)).with_outputs(steps.DONE, main="tasks")
    )
    written = read.tasks | "Translate" >> RunInference(steps.Handler(job)) | "Write" >> beam.ParDo(steps.WritePiece())
    outcomes = (written, read[steps.DONE]) | "All pieces" >> beam.Flatten()
    shards_written = (
        {"outcomes": outcomes, steps.LINES: found[steps.LINES]}
        | "By shard" >> beam.CoGroupByKey()
        | "Put together" >> beam.ParDo(steps.WriteShard(job))
    )
    _ = (
        (shards_written, found[steps.UNREADABLE])
        | "All reports" >> beam.Flatten()
        | "Add up" >> beam.CombineGlobally(add)
        | "Report" >> beam.ParDo(steps.WriteReport(job))
    )


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
