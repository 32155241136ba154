"""Runs `python -m nmt.bulk`.

For an error that the user can fix, prints one message and exits with status 2.
"""

import argparse
import functools
import itertools
import logging
import os
import signal
import sys
import time
import uuid

from ..commands.arguments import Parser, add_number
from ..config_fields import positive
from ..errors import UserError

_NAMED = 10  # files that a warning names
_BEAM = """
All other options go to Beam. On this machine:

  --direct_running_mode multi_processing --direct_num_workers N   N processes (default: one)

Paths are local, or in an object store for which Beam has a package (gs://, s3://). A shard whose
name ends in .gz is read and written compressed. Each line gives one line, in order. A line that is
not UTF-8, is too long, or makes the model fail gives an empty line and an entry in
OUTPUT/_bulk/failed. The same command again translates only the missing shards and chunks.
"""


def main() -> None:
    arguments, words = parse(sys.argv[1:])
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # of the workers too
    # So that the workers are ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        sys.exit(0 if translate(arguments, words) else 2)
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        _say(
            f"{package} is missing; `pip install -e '.[bulk]'` in an environment of its own brings "
            "it, see docs/bulk.md"
        )
    except (UserError, OSError) as error:
        _say(str(error))
    sys.exit(2)


def parse(words: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """Returns the options of this program, and the words that are left for Beam."""
    parser = Parser(
        prog="python -m nmt.bulk",
        description="Translates text shards with an export, as an Apache Beam pipeline.",
        epilog=_BEAM,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = functools.partial(parser.add_argument, required=True)
    add("--export", metavar="DIR", help="folder that `python -m nmt export` wrote (required)")
    add(
        "--input",
        metavar="PATTERN",
        nargs="+",
        help="text files, or patterns in quotes: 'text/*.en' (required)",
    )
    add(
        "--output",
        metavar="DIR",
        help="folder for the translations, which get the names of their texts (required)",
    )
    for name, default, help, most in (
        ("chunk_lines", 2000, "lines that a worker translates, and writes, at a time", 10**9),
        ("max_bytes", 4000, "longer lines fail", 10**9),
        ("model_timeout", 3600, "a job ends if a chunk, or loading the model, takes longer", 10**6),
    ):
        add_number(parser, name, int, positive(default, help, most))
    arguments, rest = parser.parse_known_args(words)
    for last, word in itertools.pairwise(["", *rest]):
        # A word after an option may be its value; Beam knows.
        if word[:1] != "-" and (last[:1] != "-" or "=" in last):
            parser.unrecognized([word])
    return arguments, rest


def translate(arguments: argparse.Namespace, words: list[str]) -> bool:
    """Runs the job, prints a report, and returns whether every shard has a translation."""
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.CRITICAL)
    from apache_beam.io.filesystems import FileSystems

    from . import pipeline, storage
    from .chunks import summary
    from .job import Job, find_shards, missing, prepare_output
    from .model import Model

    options = pipeline.pipeline_options(words)
    FileSystems.set_options(options)  # object stores need them for the first access
    if not pipeline.on_this_machine(options):
        logging.getLogger().setLevel(logging.INFO)  # Beam logs where the job can be watched
    export, output = (
        storage.plain(storage.absolute(path)) for path in (arguments.export, arguments.output)
    )
    job = Job(
        export,
        output,
        arguments.chunk_lines,
        arguments.max_bytes,
        arguments.model_timeout,
        uuid.uuid4().hex,
    )
    shards = find_shards(arguments.input, output)
    prepare_output(job)
    todo, stale = missing(job, shards)
    if stale:
        named = ", ".join(shard.target for shard in stale[:_NAMED])
        _say(
            f"warning: translations of other texts are kept: {len(stale)} ({named}); "
            "remove those to be made again"
        )
    Model(
        export, arguments.model_timeout, storage.local
    ).close()  # refuse a damaged one before the job starts
    start = time.monotonic()
    report = pipeline.run(job, todo, options)
    for shard in shards:
        storage.remove(shard.own("chunks", "/"))
    for path, reason in sorted(report.unreadable.items()):
        _say(f"{path} is damaged and was left out ({reason}); copy it again")
    print(
        summary(report, len(shards) - len(todo), time.monotonic() - start, job.own("failed")),
        flush=True,
    )
    return not report.unreadable


def _say(message: str) -> None:
    print(f"nmt.bulk: {message}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
