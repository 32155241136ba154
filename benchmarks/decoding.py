"""Measures translation with beam size 5: sentences per second and the latency of one sentence, of all engines in turn.

    python benchmarks/decoding.py --model DIR --input TEXT
    python benchmarks/decoding.py --model DIR --input TEXT --reference REFERENCE --saved_model EXPORT \\
        --ctranslate2 MODEL.ct2 --ctranslate2_python /path/to/python

DIR is the directory of a model of any type, EXPORT and MODEL.ct2 what `python -m nmt export` made of it.

Each engine is a process that has loaded its model and translated the text once (decoding_engine.py); then they
translate it in turn. Of CTranslate2 there is one process for each dtype, patience and batch size of a grid; those
with the best batch size are measured. With a patience of 2 its search ends where ours does.

docs/translation-speed.md says how the models of its tables were trained.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import sacrebleu
import tables
from runner import ROOT, Worker, parser_of

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

DTYPES, SIZES = ("float32", "int8"), (16, 32, 64)  # of CTranslate2, and the batch sizes that are tried
PATIENCES = (1, 2)


class Engine(Worker):
    """A process of decoding_engine.py."""

    def __init__(self, python, kind, model, text, output, *settings):
        self.output = output
        script = ROOT / "benchmarks" / "decoding_engine.py"
        super().__init__([python, script, kind, model, text, output, *settings], stderr=subprocess.DEVNULL)
        try:
            self.ask("all")  # loads the model and writes the translations
        except RuntimeError as error:
            sys.exit(f"decoding.py: {error}")


def start_engines(options, folder):
    """Returns the engines by name, those of CTranslate2 with their best batch sizes."""
    text, model = Path(options.input).resolve(), Path(options.model).resolve()

    def engine(name, kind, path, *settings, python=sys.executable):
        return Engine(python, kind, path, text, Path(folder, name.replace(" ", "-")), *settings)

    engines = {"ours": engine("ours", "ours", model)}
    if options.saved_model:
        engines["SavedModel"] = engine("SavedModel", "savedmodel", Path(options.saved_model).resolve())
    for dtype in DTYPES if options.ctranslate2 else ():
        for patience in PATIENCES:
            name = f"CTranslate2, {dtype}, patience {patience}"
            tried = {}
            for size in SIZES:
                path = f"{Path(options.ctranslate2).resolve()},{model}"
                settings = f"{dtype},{patience},{size}"
                found = engine(f"{name}, {size}", "ctranslate2", path, settings, python=options.ctranslate2_python)
                tried[size] = min(found.ask("all") for _ in range(2)), found
            best = min(tried, key=lambda size: tried[size][0])
            for size, (_, found) in tried.items():
                if size != best:
                    found.__exit__()
            engines[f"{name}, batches of {best}"] = tried[best][1]
    return engines


def throughput(engines, sentences, rounds):
    """Returns the sentences per second of each engine in each round."""
    speeds = {name: [] for name in engines}
    for _ in range(rounds):
        for name, engine in engines.items():
            speeds[name].append(sentences / engine.ask("all"))
    return speeds


def compared(options, outputs):
    """Returns how many translations of each engine are equal to ours, and BLEU if there is a reference."""
    lines = {name: path.read_text(encoding="utf-8").splitlines() for name, path in outputs.items()}
    found = {name: {"equal": sum(map(str.__eq__, each, lines["ours"]))} for name, each in lines.items()}
    if options.reference:
        references = Path(options.reference).read_text(encoding="utf-8").splitlines()
        for name, each in lines.items():
            found[name]["bleu"] = sacrebleu.corpus_bleu(each, [references]).score
    return found


def main():
    parser = parser_of(__doc__, rounds=3)
    parser.add_argument("--model", required=True, help="model directory")
    parser.add_argument("--input", required=True, help="text to translate")
    parser.add_argument("--reference", help="translations of --input, for BLEU")
    parser.add_argument("--saved_model", help="an export of the model")
    parser.add_argument("--ctranslate2", help="an export of the model with --format ctranslate2")
    parser.add_argument("--ctranslate2_python", default=sys.executable, help="an interpreter that has CTranslate2")
    options = parser.parse_args()
    if not Path(options.input).is_file():
        parser.error(f"--input {options.input} does not exist; give a text file")
    sentences = Path(options.input).read_bytes().count(b"\n")
    with tempfile.TemporaryDirectory() as folder:
        engines = start_engines(options, folder)
        outputs = {name: engine.output for name, engine in engines.items()}
        figures = {
            "speeds": throughput(engines, sentences, options.rounds),
            "latency": {name: [engine.ask("one") for _ in range(2)] for name, engine in engines.items()},
            "translations": compared(options, outputs),
        }
        for engine in engines.values():
            engine.__exit__()
    config = {"model_type": "rnn", **json.loads(Path(options.model, "config.json").read_text())}  # older ones lack it
    described = {name: config[name] for name in ("model_type", "state_size", "layer_normalization_type")}
    tables.publish(options, "decoding", figures, sentences=sentences, **described)


if __name__ == "__main__":
    main()
