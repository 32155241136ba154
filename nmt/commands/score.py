"""`python -m nmt score`."""

import argparse
import collections
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..decoding.batch_parallel import use_cores_for_batches
from ..decoding.options import DecodingOptions
from ..decoding.scoring import Scorer, TokenCosts
from ..errors import UserError
from ..system import load_ensemble
from ..text.batches import LONGEST
from ..text.lines import count_lines, read_chunks
from ..text.parallel_text import all_shards, other_lines
from .streams import (
    chunk_size,
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
    count = count_lines(source, errors="keep")
    others = count_lines(target, errors="keep")
    if count != others:
        raise other_lines(source, target, count, others)
    scorer = Scorer(system.vocabularies, system.model, options)
    sides = [read_chunks(path, chunk_size(options)) for path in (source, target)]
    pairs = (list(zip(*chunk, strict=True)) for chunk in zip(*sides, strict=True))
    chunks = warn_of_invalid_utf8(pairs, b"\n".join)
    numbers = collections.defaultdict(list)  # of the lines with a note, from 1
    with open_output(arguments.output, [source, target]) as output:
        lines = _lines(scorer, chunks, arguments.word_costs)
        bar = with_bar(lines, output, total=count, unit=" pairs")
        for number, (cost, line) in enumerate(bar, 1):
            output.write(f"{line}\n")
            if math.isnan(cost):
                numbers["the weights overflow; it has no cost"].append(number)
            elif math.isinf(cost):
                numbers[f"more than {LONGEST} tokens on a side; it has no cost"].append(number)
    warn_of_lines(numbers)


def _lines(
    scorer: Scorer, chunks: Iterable[list[tuple[bytes, bytes]]], word_costs: bool
) -> Iterator[tuple[float, str]]:
    """Yields the cost of each pair with the line to write."""
    for chunk in chunks:
        if word_costs:
            yield from ((each.score, _json(each)) for each in scorer.token_costs(chunk))
        else:
            yield from ((cost, f"{cost:.6f}") for cost in scorer.scores_of(chunk))


def _json(words: TokenCosts) -> str:
    """Returns a line of JSON. It has no infinity and no NaN: these become null."""
    each = [words.score, *words.costs]
    cost, *costs = (round(value, 6) if math.isfinite(value) else None for value in each)
    return json.dumps({"cost": cost, "tokens": words.tokens, "costs": costs}, ensure_ascii=False)


def _one_file(pattern: Path) -> Path:
    path, *others = all_shards(pattern)
    if others:
        raise UserError(
            f"{pattern} matches {len(others) + 1} files, and `score` takes one on each side; give "
            "one file"
        )
    return path
