"""`python -m nmt score`."""

import argparse
from pathlib import Path

from ..decoding.scoring import Scorer
from ..storage.streams import open_output
from ..system import load_ensemble
from ..text.batches import LONGEST
from ..text.by_length import chunked, map_by_length, pair_length
from ..text.parallel_text import ParallelText
from .arguments import add_alpha, add_batch_size, add_models, say, with_bar
from .chunks import BATCHES_PER_CHUNK, warn_of_invalid_utf8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_models(parser)
    parser.add_argument("-s", "--source", type=Path, required=True, metavar="FILE", help="source text (required)")
    parser.add_argument("-t", "--target", type=Path, required=True, metavar="FILE", help="its translation (required)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="costs (default: standard output)")
    add_alpha(parser)
    add_batch_size(parser, "pairs")


def run(arguments: argparse.Namespace) -> None:
    """Writes the cost of given translations: the negative log-probability of each, its end included."""
    system = load_ensemble(arguments.model)
    text = ParallelText(arguments.source, arguments.target)
    scorer = Scorer(
        system.source_vocabulary, system.target_vocabulary, system.model, alpha=arguments.normalization_alpha
    )
    chunks = warn_of_invalid_utf8(chunked(text, BATCHES_PER_CHUNK * arguments.batch_size), b"\n".join)
    results = map_by_length(scorer.costs, chunks, arguments.batch_size, pair_length)
    with open_output(arguments.output) as output:
        for cost in with_bar(results, output, total=len(text), unit=" pairs"):
            output.write(f"{cost:.6f}\n")
    if count := scorer.too_long:
        pairs = "1 pair has" if count == 1 else f"{count} pairs have"
        say(f"warning: {pairs} more than {LONGEST} tokens on a side; their cost is written as inf")
