"""`python -m nmt translate`."""

import argparse
import collections
import contextlib
import itertools
import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..decoding.batch_parallel import use_cores_for_batches
from ..decoding.options import CONSTRAINTS, DecodingOptions
from ..decoding.scoring import Aligner
from ..decoding.translator import Line, Translator
from ..errors import UserError
from ..messages import log
from ..system import load_ensemble
from ..text.batches import LONGEST
from ..text.lines import count_lines, read_chunks, read_lines
from .devices import describe_devices
from .streams import (
    chunk_size,
    open_input,
    open_output,
    warn_of_invalid_utf8,
    warn_of_lines,
    with_bar,
)


def run(arguments: argparse.Namespace) -> None:
    options = DecodingOptions.among(vars(arguments))
    aligns = bool(arguments.alignments)
    if aligns:
        _check_alignments(arguments.alignments, arguments.output, options)
    if options.samples and len(arguments.model) > 1:
        raise UserError(
            "--translation_strategy sampling draws from one model, and -m names several; give one"
        )
    if arguments.target_prefix:
        _require_prefix_of_each_line(arguments.target_prefix, arguments.input)
    use_cores_for_batches()
    system = load_ensemble(arguments.model)
    translator = system.translator(options)
    aligner = None
    if aligns:
        aligner = Aligner(system.model, options.batch_size, arguments.alignment_layer)
    numbers = collections.defaultdict(list)  # of the lines with a note, from 1
    with contextlib.ExitStack() as files:
        text = files.enter_context(open_input(arguments.input))
        inputs = [arguments.input, *filter(None, [arguments.target_prefix])]
        output = files.enter_context(open_output(arguments.output, inputs))
        aligned = files.enter_context(open_output(arguments.alignments, inputs)) if aligns else None
        is_file = arguments.input and arguments.input.is_file()
        read = read_chunks(arguments.input if is_file else text.fileno(), chunk_size(options))
        first = list(itertools.islice(read, 1))  # before there is a progress bar: it may be no text
        chunks = warn_of_invalid_utf8(itertools.chain(first, read))
        log.info(f"translates {describe_devices(system.config.dtype)}")
        lines = _translate(chunks, translator, aligner, arguments.target_prefix)
        for number, (line, links) in enumerate(with_bar(lines, output, unit=" lines")):
            if options.n_best:
                beam = zip(line.texts, line.scores, strict=True)
                output.writelines(f"{number} ||| {text} ||| {cost:.6f}\n" for text, cost in beam)
            else:
                output.write(f"{line.texts[0]}\n")
            if aligned:
                aligned.write(f"{links}\n")
            for note in _notes(line, options, aligns):
                numbers[note].append(number + 1)
    warn_of_lines(numbers)


def _notes(line: Line, options: DecodingOptions, aligns: bool) -> Iterator[str]:
    if line.unknown:
        yield (
            "at least as many unknown words as others; the model may be for another language, or "
            "for text that is split otherwise"
        )
    if line.unknown_prefix:
        yield (
            "the target vocabulary lacks words of the prefix; the translation has the unknown word "
            "in their place"
        )
    if len(line.pieces) > 1:
        yield f"longer than {LONGEST} tokens, so translated in pieces{' and not aligned' * aligns}"
    if any(line.cut if options.n_best else line.cut[:1]):
        yield "a translation was cut at the limit of length; --translation_maxlen N allows N tokens"
    if not math.isfinite(line.scores[0]):
        given = [f"--{name}" for name in CONSTRAINTS if getattr(options, name)]
        why = "as costs are infinite: the weights overflow"
        if given:
            why = f"that {', '.join(given)} allow"
        yield f"no translation, or a piece without one, {why}; it is empty there"


def _require_prefix_of_each_line(prefixes: Path, text: Path | None) -> None:
    """Refuses a file of prefixes that has another number of lines than the file of input."""
    if not prefixes.is_file():
        raise UserError(
            f"--target_prefix {prefixes} is not a file; give a text with as many lines as the input"
        )
    if text and text.is_file():
        count = count_lines(prefixes, errors="keep")
        lines = count_lines(text, errors="keep")
        if count != lines:
            raise _uneven(prefixes, count, lines)


def _uneven(prefixes: Path, count: int | str, lines: int | str) -> UserError:
    return UserError(
        f"{prefixes} has {count} lines and the input has {lines}; give one line for each, an empty "
        "one for no prefix"
    )


def _translate(
    chunks: Iterable[list[bytes]],
    translator: Translator,
    aligner: Aligner | None,
    prefix_file: Path | None,
) -> Iterator[tuple[Line, str | None]]:
    """Yields each line with its links; raises `UserError` if prefixes are too many or too few."""
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


def _check_alignments(path: Path, output: Path | None, options: DecodingOptions) -> None:
    if output and path.resolve() == output.resolve():
        raise UserError("--output and --alignments name the same file; give different ones")
    if options.n_best:
        raise UserError("alignments are those of the best translation; leave out --n_best")
