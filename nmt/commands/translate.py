"""`python -m nmt translate`."""

import argparse
from pathlib import Path

from tqdm import tqdm

from ..storage.streams import open_input, open_output
from ..system import load_ensemble
from ..text.batches import LONGEST
from ..text.by_length import map_by_length
from ..text.lines import read_chunks
from .arguments import add_batch_size, add_models, add_search, say
from .chunks import BATCHES_PER_CHUNK, warn_of_invalid_utf8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_models(parser)
    parser.add_argument("-i", "--input", type=Path, metavar="FILE", help="text (default: standard input)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="translations (default: standard output)")
    add_search(parser)
    add_batch_size(parser, "sentences")
    parser.add_argument("--n_best", action="store_true", help="write the whole beam: line ||| translation ||| cost")


def run(arguments: argparse.Namespace) -> None:
    """Translates a text that has one sentence per line."""
    translator = load_ensemble(arguments.model).translator(arguments.beam_size, arguments.normalization_alpha)
    function = translator.n_best if arguments.n_best else translator.best
    with open_input(arguments.input) as text, open_output(arguments.output) as output:
        chunks = warn_of_invalid_utf8(read_chunks(text.fileno(), BATCHES_PER_CHUNK * arguments.batch_size))
        results = map_by_length(function, chunks, arguments.batch_size)
        for number, found in enumerate(tqdm(results, unit=" lines")):
            if arguments.n_best:
                output.writelines(f"{number} ||| {text} ||| {cost:.6f}\n" for text, cost in found)
            else:
                output.write(f"{found}\n")
            output.flush()
    if count := translator.truncated:
        lines = "1 line is" if count == 1 else f"{count} lines are"
        say(f"warning: {lines} longer than {LONGEST} tokens; only the first {LONGEST} were translated")
