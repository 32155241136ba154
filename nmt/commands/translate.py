"""`python -m nmt translate`."""

import argparse
import contextlib
from collections.abc import Callable
from pathlib import Path

from ..decoding.alignment import Aligner, Alignment
from ..decoding.sampling import Sampling
from ..decoding.translator import Translator
from ..errors import UserError
from ..storage.streams import open_input, open_output
from ..system import System, load_ensemble
from ..text.batches import LONGEST
from ..text.by_length import map_by_length
from ..text.lines import read_chunks
from .arguments import add_batch_size, add_models, add_search, positive_float, positive_int, say, seed, with_bar
from .chunks import BATCHES_PER_CHUNK, warn_of_invalid_utf8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_models(parser)
    parser.add_argument("-i", "--input", type=Path, metavar="FILE", help="text (default: standard input)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="translations (default: standard output)")
    add_batch_size(parser, "sentences")
    group = parser.add_argument_group("search")
    add_search(group)
    group.add_argument("--n_best", action="store_true", help="write the whole beam: line ||| translation ||| cost")
    group = parser.add_argument_group("alignments, of an RNN")
    group.add_argument(
        "--alignments",
        type=Path,
        metavar="FILE",
        help="write `i-j` for each target token j and the source token i that has its largest attention weight",
    )
    group.add_argument(
        "--alignment_weights", type=Path, metavar="FILE", help="write tokens and all attention weights as JSON lines"
    )
    group = parser.add_argument_group("sampling")
    group.add_argument(
        "--translation_strategy",
        choices=("beam_search", "sampling"),
        default="beam_search",
        help="search, or draw each word at random: one translation a line, or --beam_size with --n_best "
        "(default: beam_search)",
    )
    group.add_argument(
        "--sampling_temperature",
        type=positive_float,
        metavar="T",
        help="divide log-probabilities by T before drawing: below 1 likely words become likelier (above 0; default: 1)",
    )
    group.add_argument(
        "--sampling_top_k",
        type=positive_int,
        metavar="K",
        help="draw from the K likeliest words (above 0; default: all)",
    )
    group.add_argument("--seed", type=seed, metavar="N", help="seed of the sampling (0 to 2147483647; default: 1234)")


def run(arguments: argparse.Namespace) -> None:
    """Translates a text that has one sentence per line."""
    sampling, aligns = _sampling(arguments), _aligns(arguments)
    hypotheses = 1 if sampling and not arguments.n_best else arguments.beam_size
    system = load_ensemble(arguments.model)
    translator = system.translator(hypotheses, arguments.normalization_alpha, sampling)
    function = translator.n_best if arguments.n_best else translator.best
    if aligns:
        function = _aligning(system, translator)
    with contextlib.ExitStack() as files:
        text = files.enter_context(open_input(arguments.input))
        output = files.enter_context(open_output(arguments.output))
        lines_of = {arguments.alignments: Alignment.pharaoh, arguments.alignment_weights: Alignment.as_json}
        aligned = [(files.enter_context(open_output(path)), line) for path, line in lines_of.items() if path]
        # Samples of a line depend on the lines beside it, so a pause must not split them.
        chunks = read_chunks(text.fileno(), BATCHES_PER_CHUNK * arguments.batch_size, pauses=not sampling)
        results = map_by_length(function, warn_of_invalid_utf8(chunks), arguments.batch_size)
        for number, found in enumerate(with_bar(results, output, unit=" lines")):
            if arguments.n_best:
                output.writelines(f"{number} ||| {text} ||| {cost:.6f}\n" for text, cost in found)
            elif aligned:
                output.write(f"{found[0]}\n")
                for file, line in aligned:
                    file.write(f"{line(found[1])}\n")
            else:
                output.write(f"{found}\n")
            output.flush()
    if count := translator.truncated:
        lines = "1 line is" if count == 1 else f"{count} lines are"
        say(f"warning: {lines} longer than {LONGEST} tokens; only the first {LONGEST} were translated")


def _aligns(arguments: argparse.Namespace) -> bool:
    """Returns whether alignments are asked for."""
    paths = [path for path in (arguments.alignments, arguments.alignment_weights) if path]
    written = [path.absolute() for path in (*paths, arguments.output) if path]
    if len(set(written)) < len(written):
        raise UserError("two of --output, --alignments and --alignment_weights name the same file; give different ones")
    if paths and arguments.n_best:
        raise UserError("alignments are those of the best translation; leave out --n_best")
    return bool(paths)


def _aligning(system: System, translator: Translator) -> Callable[[list[bytes]], list[tuple[str, Alignment]]]:
    """Returns a function from lines to their translations with alignments."""
    aligner = Aligner(system.source_vocabulary, system.target_vocabulary, system.model)

    def translate(lines: list[bytes]) -> list[tuple[str, Alignment]]:
        texts, words = zip(*translator.best_with_words(lines), strict=True)
        return list(zip(texts, aligner.align(lines, words), strict=True))

    return translate


def _sampling(arguments: argparse.Namespace) -> Sampling | None:
    options = {
        "temperature": arguments.sampling_temperature,
        "top_k": arguments.sampling_top_k,
        "seed": arguments.seed,
    }
    given = {name: value for name, value in options.items() if value is not None}
    if arguments.translation_strategy == "sampling":
        return Sampling(**given)
    if given:
        raise UserError("options of sampling have no effect on a search; give --translation_strategy sampling too")
    return None
