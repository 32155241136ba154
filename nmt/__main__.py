"""The commands: `python -m nmt corpus | vocab | train | translate | score | export | import-nematus`."""

import argparse
import contextlib
import importlib.metadata
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

import keras
import tensorflow as tf
from tqdm import tqdm

from . import corpora
from .checkpoints import load_checkpoint
from .config import STOPPING, Config, add_options, make_config, read_options
from .data import ParallelText, TrainingData, ValidationData, encode_pairs, map_by_length, pair_length
from .errors import UserError
from .export import Translator, save_translator
from .nematus import import_checkpoint
from .rnnsearch import Rates, RNNSearch
from .training import BEST, Trainer
from .vocab import Vocabulary, load_vocabulary, train_sentencepiece

_LIBRARIES = ("keras", "numpy", "sacrebleu", "sentencepiece", "tensorflow", "tensorflow-text")


class System(NamedTuple):
    """A model with what it was made from."""

    config: Config
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    model: RNNSearch

    def translator(self, beam_size: int, alpha: float) -> Translator:
        return Translator(
            self.source_vocabulary,
            self.target_vocabulary,
            self.model,
            beam_size=beam_size,
            alpha=alpha,
            max_length=self.config.translation_maxlen,
        )


def corpus(arguments: argparse.Namespace) -> None:
    """Writes a parallel corpus: train, dev and test text."""
    corpora.CORPORA[arguments.name](arguments.to)


def vocab(arguments: argparse.Namespace) -> None:
    """Makes a SentencePiece vocabulary of each side."""
    arguments.to.mkdir(parents=True, exist_ok=True)
    for side, text in (("source", arguments.source_dataset), ("target", arguments.target_dataset)):
        train_sentencepiece(text, arguments.to / f"{side}.model", arguments.size)


def train(arguments: argparse.Namespace) -> None:
    """Trains a model, or goes on with the training found in its directory."""
    options = vars(arguments)
    directory, path = options.pop("model"), options.pop("config")
    config = make_config({**(read_options(path) if path else {}), **options})
    keras.utils.set_random_seed(config.seed)
    system = _prepare(config, directory)
    vocabularies = (system.source_vocabulary, system.target_vocabulary)
    text = ParallelText(config.source_dataset, config.target_dataset)
    data = TrainingData(text, *vocabularies, batch_size=config.batch_size, maxlen=config.maxlen, seed=config.seed)
    _say(
        f"{data.used} of {len(text)} sentence pairs are used; {data.empty} have an empty side, "
        f"{data.too_long} have more than {config.maxlen} tokens on a side"
    )
    valid_text = ParallelText(config.valid_source_dataset, config.valid_target_dataset)
    best = system.translator(config.beam_size, config.normalization_alpha).best
    progress = Trainer(
        system.model,
        config,
        data,
        valid=ValidationData(valid_text, *vocabularies, batch_size=config.valid_batch_size),
        translate=lambda lines: list(map_by_length(best, lines, config.valid_batch_size)),
        directory=directory,
    ).train()
    _say(
        f"stopped after update {progress.update}; the best validation was BLEU {progress.best.bleu:.2f} "
        f"after update {progress.best.update}, kept in {directory / BEST}"
    )


def translate(arguments: argparse.Namespace) -> None:
    """Translates text, one sentence a line."""
    translator = _load(arguments.model).translator(arguments.beam_size, arguments.normalization_alpha)
    function = translator.n_best if arguments.n_best else translator.best
    with _reading(arguments.input) as lines, _writing(arguments.output) as output:
        sentences = (line.rstrip("\r\n") for line in lines)
        results = map_by_length(function, sentences, arguments.batch_size)
        for number, found in enumerate(tqdm(results, unit=" lines")):
            if arguments.n_best:
                output.writelines(f"{number} ||| {text} ||| {cost:.6f}\n" for text, cost in found)
            else:
                output.write(f"{found}\n")
            output.flush()


def score(arguments: argparse.Namespace) -> None:
    """Writes the cost of given translations: the negative log-probability of each target with its end."""
    system = _load(arguments.model)
    text = ParallelText(arguments.source, arguments.target)
    costs = tf.function(system.model.costs, reduce_retracing=True)

    def batch_costs(pairs):
        batch = encode_pairs(pairs, system.source_vocabulary, system.target_vocabulary)
        lengths = tf.reduce_sum(batch.target_mask, -1)  # the end counted
        return (costs(*batch) / lengths**arguments.normalization_alpha).numpy()

    pairs = zip(text.source, text.target, strict=True)
    results = map_by_length(batch_costs, pairs, arguments.batch_size, pair_length)
    with _writing(arguments.output) as output:
        for cost in tqdm(results, total=len(text), unit=" pairs"):
            output.write(f"{cost:.6f}\n")


def export(arguments: argparse.Namespace) -> None:
    """Saves a model to serve: a SavedModel from strings to strings."""
    translator = _load(arguments.model).translator(arguments.beam_size, arguments.normalization_alpha)
    save_translator(translator, arguments.to)


def import_nematus(arguments: argparse.Namespace) -> None:
    """Makes a model of a Nematus checkpoint."""
    import_checkpoint(
        arguments.checkpoint,
        arguments.to,
        arguments.dictionaries,
        weights=BEST,
        build=lambda config: _build(config, config.dictionaries).model.variables,
    )


def _build(config: Config, vocabularies: tuple[Path, Path]) -> System:
    source = load_vocabulary(vocabularies[0], config.source_vocab_size)
    target = load_vocabulary(vocabularies[1], config.target_vocab_size)
    model = RNNSearch(
        source.size,
        target.size,
        embedding_size=config.embedding_size,
        state_size=config.state_size,
        normalization=config.layer_normalization_type,
        rates=Rates(
            config.rnn_dropout_embedding,
            config.rnn_dropout_hidden,
            config.rnn_dropout_source,
            config.rnn_dropout_target,
        ),
        output_activation=config.output_hidden_activation,
        tie_decoder_embeddings=config.tie_decoder_embeddings,
    )
    return System(config, source, target, model)


def _prepare(config: Config, directory: Path) -> System:
    """Makes the directory of a new training, or checks that one found there was begun with this configuration."""
    saved = directory / "config.json"
    if saved.exists():
        begun = make_config(read_options(saved))
        changed = [
            name for name, value in vars(config).items() if value != getattr(begun, name) and name not in STOPPING
        ]
        if changed:
            raise UserError(
                f"{directory} holds a training begun with other values of {', '.join(changed)}; "
                "give the same, or another directory"
            )
    system = _build(config, tuple(map(Path, config.dictionaries)))
    directory.mkdir(parents=True, exist_ok=True)
    for side, path in zip(("source", "target"), map(Path, config.dictionaries), strict=True):
        shutil.copyfile(path, directory / f"{side}{path.suffix}")
    versions = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    (directory / "versions.json").write_text(json.dumps(versions, indent=2) + "\n", encoding="utf-8")
    config.save(saved)
    return system


def _load(directory: Path) -> System:
    """Loads the best model of a training."""
    saved = directory / "config.json"
    if not saved.exists():
        raise UserError(f"{directory} holds no model: it has no config.json; `python -m nmt train` makes one")
    config = make_config(read_options(saved))
    suffixes = [Path(name).suffix for name in config.dictionaries]
    system = _build(config, (directory / f"source{suffixes[0]}", directory / f"target{suffixes[1]}"))
    load_checkpoint(directory / BEST, system.model.variables)
    return system


@contextlib.contextmanager
def _reading(path: Path | None) -> Iterator[TextIO]:
    if path is None:
        yield sys.stdin
        return
    try:
        file = path.open(encoding="utf-8", newline="\n")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    with file:
        yield file


@contextlib.contextmanager
def _writing(path: Path | None) -> Iterator[TextIO]:
    """Opens the output; a file gets its name only when it is whole."""
    if path is None:
        yield sys.stdout
        return
    aside = path.with_name(path.name + ".part")
    try:
        file = aside.open("w", encoding="utf-8", newline="\n")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    with file:
        yield file
    aside.replace(path)


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
    added.add_argument("--source_dataset", type=Path, required=True, metavar="FILE", help="training text")
    added.add_argument("--target_dataset", type=Path, required=True, metavar="FILE", help="training text")
    added.add_argument("--to", type=Path, required=True, metavar="DIR", help="gets source.model and target.model")
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
        type=float,
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


def main() -> None:
    arguments = _parser().parse_args()
    run = arguments.run
    del arguments.run
    try:
        run(arguments)
    except UserError as error:
        _say(f"nmt: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
