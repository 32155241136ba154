"""Measures translation with beam size 5 by several engines in turn, and prints a table.

    python benchmarks/decoding.py --model DIR --input TEXT
    python benchmarks/decoding.py --model DIR --input TEXT --reference REFERENCE \\
        --saved_model EXPORT --ctranslate2 MODEL.ct2 --marian FOLDER --peers_python PYTHON

DIR is the directory of a model of any type, EXPORT and MODEL.ct2 what `python -m nmt export` made
of it, and FOLDER the files of Marian from which `import-marian` made it; PYTHON has pymarian.

Each engine is a process that has loaded its model and translated the text once; then they translate
it in turn. Of CTranslate2 there is one for each dtype and patience, with the best of several batch
sizes. With a patience of 2 its search ends where ours does. Measures sentences per second, and the
latency of one sentence.

docs/translation-speed.md says how the models of its tables were trained.
"""

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path

import numpy as np
import tables
from runner import Worker, answer, parser_of, seconds_of, turn

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

DTYPES = ("float32", "int8")  # of CTranslate2, and the batch sizes that are tried
SIZES = (16, 32, 64)
PATIENCES = (1, 2)
BEAM = 5
LONGEST = 200
SINGLE = 100  # lines that are translated one at a time


def ours(model):
    """Returns the function of `nmt translate`."""
    from nmt.load_tensorflow import load_tensorflow

    load_tensorflow([Path(model)])  # as the command does, before anything else imports TensorFlow
    from nmt.decoding.batch_parallel import use_cores_for_batches
    from nmt.decoding.options import DecodingOptions
    from nmt.system import load_system

    use_cores_for_batches()
    translator = load_system(Path(model)).translator(DecodingOptions(beam_size=BEAM))
    return lambda lines: [line.texts[0] for line in translator.lines(lines)]


def savedmodel(model):
    """Returns a function that calls an export as a server does, in batches sorted by length."""
    from nmt.load_tensorflow import load_tensorflow

    tf = load_tensorflow([Path(model)])  # as `nmt serve` does
    import tensorflow_text  # noqa: F401

    from nmt.decoding.batch_parallel import map_batches, use_cores_for_batches

    use_cores_for_batches()
    loaded = tf.saved_model.load(model)

    def translate(lines):
        def batch(numbers):
            found = loaded.signatures["serving_default"](
                sources=tf.constant([lines[number] for number in numbers])
            )
            return [text.decode() for text in found["translations"].numpy()]

        return map_batches(batch, np.array([len(line.split()) for line in lines]), 128)

    return translate


def ctranslate2(model, settings):
    """Returns a function that calls CTranslate2 with one thread for each translator."""
    import ctranslate2
    import sentencepiece

    path, directory = model.split(",")
    kind, patience = settings.split(",")
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=f"{directory}/{side}.model")
        for side in ("source", "target")
    )
    translator = ctranslate2.Translator(
        path, compute_type=kind, inter_threads=os.cpu_count(), intra_threads=1
    )
    options = {
        "beam_size": BEAM,
        "patience": float(patience),
        "length_penalty": 1,
        "max_decoding_length": LONGEST,
    }

    def translate(lines, batch=None):
        tokens = source.encode([line.decode() for line in lines], out_type=str)
        found = translator.translate_batch(
            tokens, max_batch_size=batch or best(tuple(lines)), **options
        )
        return [target.decode(each.hypotheses[0]) for each in found]

    @cache
    def best(lines):
        """Returns the batch size that is the fastest for these lines."""
        if len(lines) <= SIZES[0]:
            return SIZES[0]
        seconds = seconds_of({size: partial(translate, lines, size) for size in SIZES}, 1)
        return min(seconds, key=seconds.get)

    return translate


def marian(folder):
    """Returns a function that translates with Marian, with a worker for each core."""
    import pymarian
    import sentencepiece

    folder = Path(folder)
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=f"{folder}/{side}.spm")
        for side in ("source", "target")
    )
    given = {"beam_size": BEAM, "normalize": 1, "mini_batch": 32, "maxi_batch": 100}
    given |= {
        "models": next(folder.glob("*.npz")),
        "vocabs": [next(folder.glob("*.vocab.yml"))] * 2,
    }
    given |= {"maxi_batch_sort": "src", "cpu_threads": os.cpu_count(), "workspace": 500}
    translator = pymarian.Translator(**given, quiet=True, quiet_translation=True)

    def translate(lines):
        pieces = source.encode([line.decode() for line in lines], out_type=str)
        found = translator.translate(list(map(" ".join, pieces)))
        return [target.decode(text.split(" ")) for text in found]

    return translate


ENGINES = {"ours": ours, "savedmodel": savedmodel, "ctranslate2": ctranslate2, "marian": marian}


def serve(kind, model, text, output, *settings):
    """Writes the translations of a text, then answers with the seconds of all lines or of one."""
    translate = ENGINES[kind](model, *settings)
    lines = Path(text).read_bytes().split(b"\n")[:-1]
    Path(output).write_text("".join(f"{line}\n" for line in translate(lines)), encoding="utf-8")

    def seconds(asked):
        parts = [lines] if asked == "all" else [[line] for line in lines[:SINGLE]]
        return statistics.median(turn(lambda part=part: translate(part), 1) for part in parts)

    answer(seconds)


def start_engines(options, folder):
    """Returns processes by name; each has translated the text, to a file of its name."""
    text = Path(options.input).resolve()
    model = Path(options.model).resolve()
    engines = {}

    def start(name, kind, path, *settings, python=sys.executable):
        command = [python, __file__, "--engine", kind, path, text, Path(folder, name)]
        engines[name] = Worker([*command, *settings], stderr=subprocess.DEVNULL)
        engines[name].ask("all")

    start("ours", "ours", model)
    if options.saved_model:
        start("SavedModel", "savedmodel", Path(options.saved_model).resolve())
    for dtype, patience in itertools.product(DTYPES, PATIENCES) if options.ctranslate2 else ():
        path = f"{Path(options.ctranslate2).resolve()},{model}"
        settings = f"{dtype},{patience}"
        name = f"CTranslate2, {dtype}, patience {patience}"
        start(name, "ctranslate2", path, settings)
    if options.marian:
        path = Path(options.marian).resolve()
        start("Marian", "marian", path, python=options.peers_python or sys.executable)
    return engines


def compared(options, outputs):
    """Returns how many translations of each engine are ours, and BLEU if there is a reference."""
    import sacrebleu

    lines = {name: path.read_text(encoding="utf-8").splitlines() for name, path in outputs.items()}
    found = {}
    for name, each in lines.items():
        found[name] = {"equal": sum(map(str.__eq__, each, lines["ours"]))}
        if options.reference:
            references = Path(options.reference).read_text(encoding="utf-8").splitlines()
            found[name]["bleu"] = sacrebleu.corpus_bleu(each, [references]).score
    return found


def main():
    parser = parser_of(__doc__, rounds=3)
    parser.add_argument("--model", required=True, help="model directory")
    parser.add_argument("--input", required=True, help="text to translate")
    parser.add_argument("--reference", help="translations of --input, for BLEU")
    parser.add_argument("--saved_model", help="an export of the model")
    parser.add_argument("--ctranslate2", help="an export of the model with --format ctranslate2")
    parser.add_argument("--marian", help="the folder with Marian's own files of the model")
    parser.add_argument("--peers_python", metavar="PYTHON", help="a Python with pymarian")
    options = parser.parse_args()
    if not Path(options.input).is_file():
        parser.error(f"--input {options.input} does not exist; give a text file")
    sentences = Path(options.input).read_bytes().count(b"\n")
    with tempfile.TemporaryDirectory() as folder:
        try:
            engines = start_engines(options, folder)
        except RuntimeError as error:
            sys.exit(f"decoding.py: {error}")
        calls = {name: partial(engine.ask, "all") for name, engine in engines.items()}
        speeds = {}
        for name, seconds in seconds_of(calls, options.rounds).items():
            speeds[name] = [sentences / each for each in seconds]
        latency = {name: [engine.ask("one"), engine.ask("one")] for name, engine in engines.items()}
        texts = compared(options, {name: Path(folder, name) for name in engines})
        for engine in engines.values():
            engine.__exit__()
    figures = {"speeds": speeds, "latency": latency, "translations": texts}
    config = json.loads(Path(options.model, "config.json").read_text())
    names = ("model_type", "state_size", "layer_normalization_type")
    described = {name: config[name] for name in names}
    tables.publish(options, "decoding", figures, sentences=sentences, **described)


if __name__ == "__main__":
    serve(*sys.argv[2:]) if sys.argv[1:2] == ["--engine"] else main()
