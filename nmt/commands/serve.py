"""`python -m nmt serve`."""

import argparse
import logging
import os
import sys
from pathlib import Path

from ..config_fields import MOST, between, positive
from ..decoding.side_by_side import use_cores_for_batches, workers
from ..errors import UserError
from .arguments import add_number, add_path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "models", type=Path, metavar="MODELS", help="folder of NAME/VERSION folders, each an export (required)"
    )
    group = parser.add_argument_group("address")
    group.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    add_number(group, "port", int, between(8501, "port to listen on; 0: any free one", 0, 2**16 - 1))
    group = parser.add_argument_group("who may call")
    names = "names of this service in requests, besides localhost and IP addresses; '*': any (default: none)"
    group.add_argument("--allowed_hosts", nargs="+", default=[], metavar="NAME", help=names)
    group.add_argument(
        "--any_content_type", action="store_true", help="take POST without Content-Type: application/json too"
    )
    add_path(group, "--api_key_file", help="file with a key that requests must bring (default: none)")
    group = parser.add_argument_group("batches and limits")
    at_once = "batches computed at the same time; by default, as many as there are cores, or 1 with a GPU"
    add_number(group, "workers", int, positive(None, at_once, 1000))
    add_number(group, "batch", int, positive(64, "sentences joined into a batch", MOST))
    waiting = "sentences waiting or computed; by default, 1024, or 4 batches for each worker if that is more"
    add_number(group, "queue", int, positive(None, waiting, MOST))
    add_number(group, "timeout", int, positive(30, "seconds for a request", MOST))


def run(arguments: argparse.Namespace) -> None:
    """Serves exported models over HTTP, with a page at / and the REST API of TensorFlow Serving."""
    try:
        from ..serving.service.access import Access, read_key
        from ..serving.service.limits import Limits
        from ..serving.service.server import serve
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is missing; `pip install -e '.[serving]'` brings it") from None
    use_cores_for_batches(arguments.workers)
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    logging.getLogger("serve").setLevel(logging.INFO)
    at_once, batch = arguments.workers or workers(), arguments.batch
    queue = arguments.queue or max(1024, 4 * at_once * batch)
    limits = Limits(workers=at_once, batch=batch, queue=queue, deadline=arguments.timeout)
    key = read_key(arguments.api_key_file) if arguments.api_key_file else None
    access = Access(arguments.allowed_hosts, arguments.any_content_type, key)
    serve(arguments.models, arguments.host, arguments.port, limits, access)
    # Python would wait for the threads of batches that are still computed, whose callers have all left.
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)
