"""`python -m nmt serve`."""

import argparse
import functools
import logging
import os
import sys

from ..decoding.batch_parallel import use_cores_for_batches, workers
from ..serving.service.access import Access, read_key
from ..serving.service.limits import Limits
from ..serving.service.loaded_model import load_export
from ..serving.service.server import serve
from ..serving.service.store import Store


def run(arguments: argparse.Namespace) -> None:
    use_cores_for_batches(arguments.workers)
    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.WARNING)
    logging.getLogger("serve").setLevel(logging.INFO)
    at_once = arguments.workers or workers()
    limits = Limits(
        workers=at_once,
        batch=arguments.batch,
        queue=arguments.queue or max(1024, 4 * at_once * arguments.batch),
        tokens=arguments.tokens,
        deadline=arguments.timeout,
    )
    key = read_key(arguments.api_key_file) if arguments.api_key_file else None
    access = Access(arguments.allowed_hosts, arguments.any_content_type, key)
    load = functools.partial(load_export, compute_type=arguments.compute_type, workers=at_once)
    serve(Store(arguments.models, load), arguments.host, arguments.port, limits, access)
    # Python would wait for the threads of batches that are still computed, whose callers have all
    # left.
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)
