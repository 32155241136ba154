"""`python -m nmt serve`."""

import argparse
import logging
import os
import sys
from pathlib import Path

from ..decoding.side_by_side import use_cores_for_batches, workers
from ..errors import UserError
from .arguments import at_most, positive_int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "models", type=Path, metavar="MODELS", help="folder of NAME/VERSION folders, each an export (required)"
    )
    group = parser.add_argument_group("address")
    group.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    group.add_argument("--port", type=_port, default=8501, help="port to listen on; 0: any free one (default: 8501)")
    group = parser.add_argument_group("who may call")
    group.add_argument(
        "--allowed_hosts",
        nargs="+",
        default=[],
        metavar="NAME",
        help="names of this service in requests, besides localhost and IP addresses; '*': any (default: none)",
    )
    group.add_argument(
        "--any_content_type", action="store_true", help="take POST without Content-Type: application/json too"
    )
    group.add_argument(
        "--api_key_file", type=Path, metavar="FILE", help="file with a key that requests must bring (default: none)"
    )
    group = parser.add_argument_group("batches and limits")
    group.add_argument(
        "--workers",
        type=at_most(1000),
        metavar="N",
        help="batches computed at the same time (above 0; default: the number of cores, or 1 with a GPU)",
    )
    group.add_argument(
        "--batch", type=positive_int, default=64, help="sentences joined into a batch (above 0; default: 64)"
    )
    group.add_argument(
        "--queue", type=positive_int, default=1024, help="sentences waiting or computed (above 0; default: 1024)"
    )
    group.add_argument("--timeout", type=positive_int, default=30, help="seconds for a request (above 0; default: 30)")


def run(arguments: argparse.Namespace) -> None:
    """Serves exported models over HTTP, with a page at / and the REST API of TensorFlow Serving."""
    try:
        from ..serving.service.access import Access, read_key
        from ..serving.service.limits import Limits
        from ..serving.service.server import serve
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is missing; `pip install -e '.[serving]'` brings it") from None
    use_cores_for_batches()
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    logging.getLogger("serve").setLevel(logging.INFO)
    limits = Limits(
        workers=arguments.workers or workers(), batch=arguments.batch, queue=arguments.queue, deadline=arguments.timeout
    )
    key = read_key(arguments.api_key_file) if arguments.api_key_file else None
    access = Access(arguments.allowed_hosts, arguments.any_content_type, key)
    serve(arguments.models, arguments.host, arguments.port, limits, access)
    # Python would wait for the threads of batches that are still computed, whose callers have all left.
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)


def _port(text: str) -> int:
    if not (text.isdecimal() and int(text) < 2**16):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, 0 to 65535")
    return int(text)
