"""`python -m nmt score`."""

import argparse
import collections
import itertools
import math
from pathlib import Path

from ..decoding.batch_parallel import use_cores_for_batches
from ..decoding.options import DecodingOptions
from ..decoding.scoring import Scorer
from ..errors import UserError
from ..system import load_ensemble
from ..text.batches import LONGEST
from ..text.lines import read_chunks
from ..text.parallel_text import other_lines
from ..text.shards import all_shards
from .streams import (
    chunk_size,
    count_any_lines,
    open_output,
    warn_of_invalid_utf8,
    warn_of_lines,
    with_bar,
)


def run(arguments: argparse.Namespace) -> None:
    options = DecodingOptions.among(vars(arguments))
    use_cores_for_batches()
    system = load_ensemble(arguments.model)
    source = _one_file(arguments.source)
    target = _one_file(arguments.target)
    count = count_any_lines(source)
    others = count_any_lines(target)
    if count != others:
        raise other_lines(source, target, count, others)
    scorer = Scorer(system.vocabularies, system.model, options)
    sides = [read_chunks(path, chunk_size(options)) for path in (source, target)]
    pairs = (list(zip(*chunk, strict=True)) for chunk in zip(*sides, strict=True))
    chunks = warn_of_invalid_utf8(pairs, b"\n".join)
    numbers = collections.defaultdict(list)  # of the lines with a note, from 1
    with open_output(arguments.output, [source, target]) as output:
        costs = itertools.chain.from_iterable(map(scorer.costs, chunks))
        for number, cost in enumerate(with_bar(costs, output, total=count, unit=" pairs"), 1):
            output.write(f"{cost:.6f}\n")
            if not math.isfinite(cost):
                why = f"more than {LONGEST} tokens on a side"
                if math.isnan(cost):
                    why = "the weights overflow"
                numbers[f"{why}; {cost} is written in place of a cost"].append(number)
    warn_of_lines(numbers)


def _one_file(pattern: Path) -> Path:
    path, *others = all_shards(pattern)
    if others:
        raise UserError(
            f"{pattern} matches {len(others) + 1} files, and `score` takes one on each side; give "
            "one file"
        )
    return path
