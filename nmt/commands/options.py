"""Declares the options of each command of `python -m nmt`.

Each function here adds the options of a command to a parser, and its docstring is the help. The
module of the same name runs it; it is imported after the command line has been read, because
TensorFlow takes seconds to load.
"""

import argparse
import dataclasses
from pathlib import Path

from ..config import GROUPS
from ..config_fields import MOST, between, positive
from ..config_rules import preset_names
from ..decoding.options import SEARCH
from .arguments import add_decoding, add_models, add_number, add_option, add_path

_MODELS = "directory of a trained model, or several for an ensemble"
# SentencePiece's rules of Unicode normalization.
_RULES = ("nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity")


def corpus(parser: argparse.ArgumentParser) -> None:
    """Writes a parallel corpus: texts for training, validation and test."""
    parser.add_argument("name", choices=("demo", "multi30k"), help="name of the corpus (required)")
    add_path(parser, "--to", metavar="DIR", required=True, help="where its files go")


def vocab(parser: argparse.ArgumentParser) -> None:
    """Trains a SentencePiece vocabulary for each side, or one for both."""
    add_path(
        parser, "--to", metavar="DIR", required=True, help="where source.model and target.model go"
    )
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}_dataset",
            nargs="+",
            metavar="FILE",
            required=True,
            help=f"training text, {side} side: files or patterns, also .gz, .zst (required)",
        )
    add_number(parser, "size", int, positive(8000, "subword units on each side", 10_000_000))
    parser.add_argument(
        "--kind",
        choices=("bpe", "unigram"),
        default="bpe",
        help="byte-pair encoding or unigram model (default: bpe)",
    )
    add_number(
        parser,
        "sample_lines",
        int,
        positive(None, "train on N lines of each side, evenly spread; by default, on all", MOST),
    )
    add_number(
        parser,
        "character_coverage",
        float,
        between(
            1.0,
            "share of the characters of the text that get a unit; 0.9995 suits Chinese",
            0.98,
            1,
        ),
    )
    parser.add_argument(
        "--byte_fallback",
        action="store_true",
        help="add 256 units for bytes: no character is unknown",
    )
    parser.add_argument(
        "--user_symbols",
        nargs="+",
        default=(),
        metavar="SYMBOL",
        help="units that are never split, such as <2de>",
    )
    parser.add_argument(
        "--normalization_rule",
        choices=_RULES,
        default="nmt_nfkc",
        help="Unicode normalization of the text; _cf folds case (default: nmt_nfkc)",
    )
    parser.add_argument(
        "--begin_symbol",
        action="store_true",
        help="give the beginning of a sentence an id of its own; else a Transformer begins with "
        "the unknown word",
    )
    parser.add_argument("--split_digits", action="store_true", help="make each digit a unit")
    parser.add_argument(
        "--joint", action="store_true", help="train one vocabulary on both texts, for both sides"
    )


def train(parser: argparse.ArgumentParser) -> None:
    """Trains a model, or resumes the training found in its directory."""
    parser.usage = "%(prog)s -m DIR [--config FILE] [options]"
    add_path(parser, "-m", "--model", metavar="DIR", required=True, help="where the model goes")
    add_path(
        parser, "--config", help="file of options, JSON or YAML; the command line overrides it"
    )
    parser.add_argument(
        "--preset",
        default=argparse.SUPPRESS,
        metavar=f"{{{','.join(preset_names())}}}",
        help="options that belong together; options that are given too, here or in --config, win",
    )
    add_number(
        parser,
        "processes",
        int,
        positive(
            None,
            "train with this many processes, each with a GPU or a share of the cores; by default, "
            "one for each GPU",
            1000,
        ),
    )
    for title, options in GROUPS.items():
        group = parser.add_argument_group(title)
        for field in dataclasses.fields(options):
            add_option(group, field)


def average(parser: argparse.ArgumentParser) -> None:
    """Averages the weights of models: those that one training kept, or the best of several."""
    add_models(
        parser,
        "directory of a training, whose models `train --keep` and `--keep_best` kept, or several: "
        "the best of each",
    )
    chosen = parser.add_mutually_exclusive_group()
    add_number(
        chosen,
        "last",
        int,
        positive(None, "average the latest N of each; by default, all kept", MOST),
    )
    add_number(
        chosen, "best", int, positive(None, "average the best N of each, by --valid_metric", MOST)
    )
    add_path(parser, "--to", metavar="DIR", required=True, help="directory of the new model")


def translate(parser: argparse.ArgumentParser) -> None:
    """Translates a text that has one sentence per line."""
    add_models(parser, _MODELS)
    add_path(parser, "-i", "--input", help="text, also .gz and .zst (default: standard input)")
    add_path(parser, "-o", "--output", help="translations (default: standard output)")
    add_path(
        parser,
        "--target_prefix",
        help="line i is the beginning of translation i, an empty line none; also .gz and .zst",
    )
    add_decoding(
        parser,
        *("batch_size", *SEARCH, "n_best", "units"),
        *("translation_strategy", "sampling_temperature", "sampling_top_k", "seed"),
    )
    group = parser.add_argument_group("alignments")
    add_path(
        group,
        "--alignments",
        help="write `i-j` for each target token j and the source token i that it attends to most",
    )
    add_number(
        group,
        "alignment_layer",
        int,
        positive(
            None,
            "layer of a Transformer's decoder that aligns; by default, that of the model",
            1000,
        ),
    )


def score(parser: argparse.ArgumentParser) -> None:
    """Scores translations: negative log-probability, end included, divided by length."""
    add_models(parser, _MODELS)
    add_path(parser, "-s", "--source", required=True, help="source text")
    add_path(parser, "-t", "--target", required=True, help="its translation")
    add_path(parser, "-o", "--output", help="costs (default: standard output)")
    parser.add_argument(
        "--word_costs",
        action="store_true",
        help="write a line of JSON for each pair: its cost, its target tokens and their costs",
    )
    add_decoding(parser, "batch_size", "normalization_alpha", "units")


def export(parser: argparse.ArgumentParser) -> None:
    """Exports a model as a SavedModel or for CTranslate2."""
    add_models(parser, _MODELS)
    add_path(
        parser,
        "--to",
        metavar="DIR",
        required=True,
        help="where the model goes; MODELS/NAME/VERSION for `serve` and TensorFlow Serving",
    )
    parser.add_argument(
        "--format",
        choices=("savedmodel", "savedmodel_ids", "ctranslate2"),
        default="savedmodel",
        help="what to write: a SavedModel that takes and returns text, a SavedModel that maps "
        "token ids to token ids and needs no tensorflow-text, or a model of CTranslate2 with what "
        "`serve` needs to translate text (default: savedmodel)",
    )
    parser.add_argument(
        "--compute_type",
        choices=("float32", "float16", "bfloat16", "int16", "int8"),
        help="type of the weights that --format ctranslate2 writes (default: float32)",
    )
    parser.add_argument(
        "--languages",
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="for the model card (default: the endings of the training texts)",
    )
    add_decoding(parser, *SEARCH)


def serve(parser: argparse.ArgumentParser) -> None:
    """Serves exported models over HTTP, with a page at / and the REST API of TensorFlow Serving."""
    parser.add_argument(
        "models",
        type=Path,
        metavar="MODELS",
        help="folder of NAME/VERSION folders, each an export (required)",
    )
    group = parser.add_argument_group("address")
    group.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)"
    )
    add_number(
        group, "port", int, between(8501, "port to listen on; 0: any free one", 0, 2**16 - 1)
    )
    group = parser.add_argument_group("who may call")
    group.add_argument(
        "--allowed_hosts",
        nargs="+",
        default=[],
        metavar="NAME",
        help="names of this service in requests, besides localhost and IP addresses; '*': any "
        "(default: none)",
    )
    group.add_argument(
        "--any_content_type",
        action="store_true",
        help="take POST without Content-Type: application/json too",
    )
    add_path(
        group, "--api_key_file", help="file with a key that requests must bring (default: none)"
    )
    group = parser.add_argument_group("batches and limits")
    add_number(
        group,
        "workers",
        int,
        positive(
            None,
            "batches computed at the same time; by default, as many as there are cores, or 1 with "
            "a GPU",
            1000,
        ),
    )
    add_number(group, "batch", int, positive(64, "sentences joined into a batch", MOST))
    add_number(
        group,
        "queue",
        int,
        positive(
            None,
            "sentences waiting or computed; by default, 1024, or 4 batches for each worker if that "
            "is more",
            MOST,
        ),
    )
    group.add_argument(
        "--compute_type",
        default="default",
        metavar="TYPE",
        help="type in which CTranslate2 computes its exports, as int8 (default: the export's)",
    )
    add_number(
        group,
        "tokens",
        int,
        positive(
            2000,
            "tokens of a sentence and of the longest translation that it may have, together",
            MOST,
        ),
    )
    add_number(group, "timeout", int, positive(30, "seconds for a request", MOST))


def import_nematus(parser: argparse.ArgumentParser) -> None:
    """Imports a Nematus checkpoint as a model directory."""
    parser.add_argument(
        "checkpoint",
        type=Path,
        metavar="CHECKPOINT",
        help="path without extension, as .../model-20 (required)",
    )
    add_path(parser, "--to", metavar="DIR", required=True, help="where the model goes")
    add_path(
        parser,
        "--dictionaries",
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help=".json dictionaries (default: those named in the options of the checkpoint)",
    )


def import_marian(parser: argparse.ArgumentParser) -> None:
    """Imports a Marian model, such as OPUS-MT's, from Marian's or Hugging Face's files."""
    parser.add_argument(
        "folder",
        type=Path,
        metavar="FOLDER",
        help="folder with decoder.yml or config.json, weights, vocabularies (required)",
    )
    add_path(parser, "--to", metavar="DIR", required=True, help="where the model goes")
    parser.add_argument(
        "--licence", help="licence of the model, if README.md in the folder does not state it"
    )


def export_nematus(parser: argparse.ArgumentParser) -> None:
    """Exports a model as a Nematus checkpoint."""
    parser.add_argument(
        "model", type=Path, metavar="DIR", help="directory of a trained model (required)"
    )
    add_path(
        parser,
        "--to",
        metavar="MODEL",
        required=True,
        help="path of the checkpoint without extension",
    )
    parser.add_argument(
        "--version",
        choices=("master", "v0.3"),
        default="master",
        help="the Nematus that reads it; master is also for v0.5",
    )


COMMANDS = (
    *(corpus, vocab, train, average),
    *(translate, score, export, serve, import_marian, import_nematus, export_nematus),
)
