"""`python -m nmt translate`."""

import argparse
import collections
import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ..decoding.alignment import Aligner, Alignment
from ..decoding.options import CONSTRAINTS, DecodingOptions
from ..decoding.side_by_side import use_cores_for_batches
from ..decoding.translator import Line, Translator
from ..errors import UserError
from ..messages import log
from ..system import load_ensemble
from ..text.batches import LONGEST
from ..text.lines import read_chunks, read_lines
from .devices import describe_devices
from .streams import chunk_size, counted, number_list, open_input, open_output, warn_of_invalid_utf8, with_bar


def run(arguments: argparse.Namespace) -> None:
    options, aligns = DecodingOptions.among(vars(arguments)), _aligns(arguments)
    if arguments.target_prefix:
        _require_prefix_of_each_line(arguments.target_prefix, arguments.input)
    use_cores_for_batches()
    system = load_ensemble(arguments.model)
    translator = system.translator(options)
    aligner = Aligner(system.vocabularies, system.model, options.batch_size) if aligns else None
    numbers = collections.defaultdict(list)  # of the lines of each kind, from 1
    with contextlib.ExitStack() as files:
        text = files.enter_context(open_input(arguments.input))
        inputs = [arguments.input, *filter(None, [arguments.target_prefix])]
        output = files.enter_context(open_output(arguments.output, inputs))
        lines_of = {arguments.alignments: Alignment.pharaoh, arguments.alignment_weights: Alignment.as_json}
        aligned = [(files.enter_context(open_output(path, inputs)), line) for path, line in lines_of.items() if path]
        source = arguments.input if arguments.input and arguments.input.is_file() else text.fileno()
        read = read_chunks(source, chunk_size(options))
        first = list(itertools.islice(read, 1))  # before there is a progress bar: it may be no text
        chunks = warn_of_invalid_utf8(itertools.chain(first, read))
        log.info(f"translates {describe_devices(system.config.dtype)}")
        for number, (line, alignment) in enumerate(
            with_bar(_translate(chunks, translator, aligner, arguments.target_prefix), output, unit=" lines")
        ):
            if options.n_best:
                beam = zip(line.texts, line.scores, strict=True)
                output.writelines(f"{number} ||| {text} ||| {cost:.6f}\n" for text, cost in beam)
            else:
                output.write(f"{line.texts[0]}\n")
            for file, write in aligned:
                file.write(f"{write(alignment)}\n")
            for kind in _kinds(line, options.n_best):
                numbers[kind].append(number + 1)
    _say_notes(numbers, [f"--{name}" for name in CONSTRAINTS if getattr(options, name)])


def _kinds(line: Line, n_best: bool) -> Iterator[str]:
    """Yields what is to be said of a line."""
    if line.unknown:
        yield "unknown"
    if line.unknown_prefix:
        yield "unknown prefix"
    if len(line.pieces) > 1:
        yield "split"
    if any(line.cut if n_best else line.cut[:1]):
        yield "cut"
    if not math.isfinite(line.scores[0]):
        yield "none"


def _say_notes(numbers: Mapping[str, list[int]], constraints: list[str]) -> None:
    """Prints the numbers of the lines of each kind."""

    def named(kind: str, one: str, several: str, after: str) -> str:
        return f"{counted(numbers[kind], one, several)} {after} ({number_list(numbers[kind])})"

    if "unknown" in numbers:
        lines = named("unknown", "line has", "lines have", "at least as many unknown words as others")
        log.warning(f"{lines}; the model may be for another language, or for text that is split otherwise")
    if "unknown prefix" in numbers:
        lines = named(
            "unknown prefix", "line has", "lines have", "a prefix with words that the target vocabulary lacks"
        )
        log.warning(f"{lines}; the translation has the unknown word in their place")
    if "split" in numbers:
        longer = f"longer than {LONGEST} tokens and"
        lines = named("split", f"line is {longer} was", f"lines are {longer} were", "translated in pieces")
        log.info(f"note: {lines}")
    if "cut" in numbers:
        lines = named("cut", "line has", "lines have", "a translation that was cut at the limit of length")
        log.warning(f"{lines}; --translation_maxlen N allows N tokens")
    if "none" in numbers:
        why = (
            f" that {', '.join(constraints)} allow" if constraints else ", as costs are infinite: the weights overflow"
        )
        lines = named("none", "line has", "lines have", f"no translation, or a piece without one{why}")
        log.warning(f"{lines}; it is empty there")


def _require_prefix_of_each_line(prefixes: Path, text: Path | None) -> None:
    """Raises `UserError` if there is not a prefix for each line; the lines of a stream are not known yet."""
    if not prefixes.is_file():
        raise UserError(f"--target_prefix {prefixes} is not a file; give a text with as many lines as the input")
    if text and text.is_file():
        count, lines = (sum(1 for _ in read_lines(path, errors="keep")) for path in (prefixes, text))
        if count != lines:
            raise _uneven(prefixes, count, lines)


def _uneven(prefixes: Path, count: int | str, lines: int | str) -> UserError:
    return UserError(
        f"{prefixes} has {count} lines and the input has {lines}; give one line for each, an empty one for no prefix"
    )


def _translate(
    chunks: Iterable[list[bytes]], translator: Translator, aligner: Aligner | None, prefix_file: Path | None
) -> Iterator[tuple[Line, Alignment | None]]:
    """Yields each line with its alignment; raises `UserError` if there are more or fewer prefixes than lines."""
    count = 0
    prefixes = read_lines(prefix_file, errors="keep") if prefix_file else None
    for chunk in chunks:
        begins = list(itertools.islice(prefixes, len(chunk))) if prefixes else None
        if prefixes and len(begins) < len(chunk):
            raise _uneven(prefix_file, count + len(begins), "more")
        lines = translator.lines(chunk, count, prefixes=begins)
        count += len(chunk)
        yield from zip(lines, aligner.align(lines) if aligner else [None] * len(lines), strict=True)
    if prefixes and next(prefixes, None) is not None:
        raise _uneven(prefix_file, "more", count)


def _aligns(arguments: argparse.Namespace) -> bool:
    """Returns whether alignments are asked for."""
    paths = [path for path in (arguments.alignments, arguments.alignment_weights) if path]
    written = [path.resolve() for path in (*paths, arguments.output) if path]
    if len(set(written)) < len(written):
        raise UserError("two of --output, --alignments and --alignment_weights name the same file; give different ones")
    if paths and vars(arguments).get("n_best"):
        raise UserError("alignments are those of the best translation; leave out --n_best")
    return bool(paths)
