"""The commands: `python -m nmt corpus | vocab | train | translate | score | export | import-nematus`."""

import argparse
import math
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import keras
import tensorflow as tf
from tqdm import tqdm

from .config import Config, add_options, make_config, read_options
from .decoding.scoring import Scorer
from .decoding.translator import save_translator
from .errors import UserError
from .nematus import import_checkpoint
from .storage.checkpoints import BEST
from .storage.files import atomic_write, exclusive
from .storage.streams import reading, writing
from .system import build_system, load_system, open_system, save_system
from .text import corpora
from .text.batches import LONGEST, TrainingData, ValidationData, in_portions, map_by_length, pair_length
from .text.lines import ParallelText, read_portions
from .text.vocabulary import load_vocabulary, train_sentencepiece
from .training.interruption import Interrupted, interruptible
from .training.trainer import Trainer

_PORTION = 20  # batches of like length are made of so many batches of lines


def corpus(arguments: argparse.Namespace) -> None:
    """Writes a parallel corpus: train, dev and test text."""
    corpora.CORPORA[arguments.name](arguments.to)


def vocab(arguments: argparse.Namespace) -> None:
    """Makes a SentencePiece vocabulary of each side, or takes a pair of Nematus dictionaries as it is."""
    given = arguments.dictionaries or (arguments.source_dataset, arguments.target_dataset)
    if None in given:
        raise UserError("give --source_dataset and --target_dataset, or --dictionaries")
    if arguments.dictionaries:
        for path in given:
            load_vocabulary(path)  # refuses what is none
    arguments.to.mkdir(parents=True, exist_ok=True)
    for side, path in zip(("source", "target"), given, strict=True):
        if arguments.dictionaries:
            with atomic_write(arguments.to / f"{side}{path.suffix}", "wb") as file:
                file.write(path.read_bytes())
        else:
            train_sentencepiece(path, arguments.to / f"{side}.model", arguments.size)


def train(arguments: argparse.Namespace) -> None:
    """Trains a model, or goes on with the training found in its directory."""
    options = vars(arguments)
    directory, path = options.pop("model"), options.pop("config")
    config = make_config({**(read_options(path) if path else {}), **options})
    if config.deterministic:
        tf.config.experimental.enable_op_determinism()
    keras.utils.set_random_seed(config.seed)
    with interruptible(), exclusive(directory):
        _train(config, directory)


def _train(config: Config, directory: Path) -> None:
    system = open_system(config, directory)
    trainer = Trainer(system.model, config, directory, system.made_with)
    vocabularies = (system.source_vocabulary, system.target_vocabulary)
    text = ParallelText(config.source_dataset, config.target_dataset).checked()
    valid_text = ParallelText(config.valid_source_dataset, config.valid_target_dataset).checked()
    data = TrainingData(text, *vocabularies, batch_size=config.batch_size, maxlen=config.maxlen, seed=config.seed)
    valid = ValidationData(valid_text, *vocabularies, batch_size=config.valid_batch_size)
    _say(
        f"{data.used} of {len(text)} sentence pairs are used; {data.empty} have an empty side, "
        f"{data.too_long} have more than {config.maxlen} tokens on a side"
    )
    if shared := valid_text.shared_with(text):
        _say(f"warning: {shared} of the {len(valid_text)} sentence pairs for validation are trained on too")
    if valid.too_long:
        _say(f"warning: the loss leaves out {valid.too_long} pairs for validation of more than {LONGEST} tokens")
    save_system(system, directory)
    best, size = system.translator(config.beam_size, config.normalization_alpha).best, config.valid_batch_size
    try:
        progress = trainer.train(data, valid, lambda lines: list(map_by_length(best, [lines], size)))
    except Interrupted:
        _say(f"interrupted after update {trainer.progress.update}; the same command goes on from what is saved")
        raise
    kept = "kept in" if (directory / BEST).exists() else "but there is no"
    _say(
        f"stopped after update {progress.update}, {progress.skipped} of them skipped; the best validation was BLEU "
        f"{progress.best.bleu:.2f} after update {progress.best.update}, {kept} {directory / BEST}"
    )


def translate(arguments: argparse.Namespace) -> None:
    """Translates text, one sentence a line."""
    translator = load_system(arguments.model).translator(arguments.beam_size, arguments.normalization_alpha)
    function = translator.n_best if arguments.n_best else translator.best
    with reading(arguments.input) as text, writing(arguments.output) as output:
        portions = _noting_bad_bytes(read_portions(text.fileno(), _PORTION * arguments.batch_size))
        results = map_by_length(function, portions, arguments.batch_size)
        for number, found in enumerate(tqdm(results, unit=" lines")):
            if arguments.n_best:
                output.writelines(f"{number} ||| {text} ||| {cost:.6f}\n" for text, cost in found)
            else:
                output.write(f"{found}\n")
            output.flush()
    if translator.cut:
        _say(f"warning: longer than {LONGEST} tokens are {translator.cut} lines; only so much of them is translated")


def score(arguments: argparse.Namespace) -> None:
    """Writes the cost of given translations: the negative log-probability of each target with its end."""
    system = load_system(arguments.model)
    text = ParallelText(arguments.source, arguments.target)
    scorer = Scorer(
        system.source_vocabulary, system.target_vocabulary, system.model, alpha=arguments.normalization_alpha
    )
    portions = _noting_bad_bytes(in_portions(text, _PORTION * arguments.batch_size), b"\n".join)
    results = map_by_length(scorer.costs, portions, arguments.batch_size, pair_length)
    with writing(arguments.output) as output:
        for cost in tqdm(results, total=len(text), unit=" pairs"):
            output.write(f"{cost:.6f}\n")
    if scorer.too_long:
        _say(f"warning: longer than {LONGEST} tokens on a side are {scorer.too_long} pairs; their cost is given as inf")


def export(arguments: argparse.Namespace) -> None:
    """Saves a model to serve: a SavedModel from strings to strings."""
    translator = load_system(arguments.model).translator(arguments.beam_size, arguments.normalization_alpha)
    save_translator(translator, arguments.to)


def import_nematus(arguments: argparse.Namespace) -> None:
    """Makes a model of a Nematus checkpoint."""

    def build(config: Config):
        system = build_system(config, config.dictionaries)
        return system.model.variables, system.made_with

    import_checkpoint(arguments.checkpoint, arguments.to, arguments.dictionaries, build)


def _noting_bad_bytes(portions: Iterator[list], text: Callable[[Any], bytes] = bytes) -> Iterator[list]:
    """Passes on portions, and says at the end which of their items are not UTF-8, given the text of each."""
    seen, bad = 0, []
    for portion in portions:
        for number, item in enumerate(portion, seen + 1):
            try:
                text(item).decode()
            except UnicodeDecodeError:
                bad.append(number)
        seen += len(portion)
        yield portion
    if bad:
        _say(f"warning: not UTF-8 are {len(bad)} of {seen} lines, first line {bad[0]}; they were read as unknown words")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, and exits with status 2."""

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m nmt", description="Neural machine translation, Nematus style.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(function) -> argparse.ArgumentParser:
        described = {"help": function.__doc__.rstrip("."), "description": function.__doc__}
        added = commands.add_parser(function.__name__.replace("_", "-"), **described)
        added.set_defaults(run=function)
        return added

    added = command(corpus)
    added.add_argument("name", choices=corpora.CORPORA, help="which corpus")
    added.add_argument("--to", type=Path, required=True, metavar="DIR", help="where its files go")

    added = command(vocab)
    added.add_argument("--source_dataset", type=Path, metavar="FILE", help="training text, source side")
    added.add_argument("--target_dataset", type=Path, metavar="FILE", help="training text, target side")
    added.add_argument(
        "--dictionaries", type=Path, nargs=2, metavar="FILE", help="a Nematus .json pair to take instead"
    )
    added.add_argument(
        "--to", type=Path, required=True, metavar="DIR", help="gets source.model and target.model, or .json"
    )
    added.add_argument("--size", type=_positive, default=8000, help="units on each side (default: 8000)")

    added = command(train)
    added.add_argument("-m", "--model", type=Path, required=True, metavar="DIR", help="where the model goes")
    added.add_argument("--config", type=Path, metavar="FILE", help="JSON from option to value; options given win")
    add_options(added)

    added = command(translate)
    _add_model(added)
    added.add_argument("-i", "--input", type=Path, metavar="FILE", help="text (default: standard input)")
    added.add_argument("-o", "--output", type=Path, metavar="FILE", help="translations (default: standard output)")
    _add_search(added)
    added.add_argument("-b", "--batch_size", type=_positive, default=80, help="sentences in a batch (default: 80)")
    added.add_argument("--n_best", action="store_true", help="write the whole beam: line ||| translation ||| cost")

    added = command(score)
    _add_model(added)
    added.add_argument("-s", "--source", type=Path, required=True, metavar="FILE", help="text")
    added.add_argument("-t", "--target", type=Path, required=True, metavar="FILE", help="its translation")
    added.add_argument("-o", "--output", type=Path, metavar="FILE", help="costs (default: standard output)")
    _add_alpha(added)
    added.add_argument("-b", "--batch_size", type=_positive, default=80, help="pairs in a batch (default: 80)")

    added = command(export)
    _add_model(added)
    added.add_argument("--to", type=Path, required=True, metavar="DIR", help="where the SavedModel goes")
    _add_search(added)

    added = command(import_nematus)
    added.add_argument("checkpoint", type=Path, metavar="CHECKPOINT", help="its name without ending: .../model-20")
    added.add_argument("--to", type=Path, required=True, metavar="DIR", help="where the model goes")
    added.add_argument(
        "--dictionaries",
        type=Path,
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="its .json dictionaries (default: those its options name)",
    )
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-m", "--model", type=Path, required=True, metavar="DIR", help="directory of a trained model")


def _add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-k", "--beam_size", type=_positive, default=5, help="hypotheses kept (default: 5)")
    _add_alpha(parser)


def _add_alpha(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-n",
        "--normalization_alpha",
        type=_not_negative,
        nargs="?",
        default=0.0,
        const=1.0,
        metavar="ALPHA",
        help="divide costs by length to this power (default: 0; bare -n: 1)",
    )


def _positive(text: str) -> int:
    if not (text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _not_negative(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 0")
    return number


def main() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # and not ignored, as of a job in the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # end as by Ctrl-C, so that nothing half-written is left
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    arguments = _parser().parse_args()
    run = arguments.run
    del arguments.run
    try:
        run(arguments)
    except UserError as error:
        _fail(str(error))
    except BrokenPipeError:  # the reader of the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (OSError, UnicodeError, tf.errors.OpError) as error:
        _fail(f"{type(error).__name__}: {error}".replace("\n", " "))
    except KeyboardInterrupt:
        sys.exit(130)
    except Interrupted as stop:
        sys.exit(0 if stop.args[0] == signal.SIGTERM else 130)


def _fail(message: str) -> NoReturn:
    _say(f"nmt: {message}")
    sys.exit(2)


if __name__ == "__main__":
    main()
