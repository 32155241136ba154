"""Measures translation with beam size 5: sentences per second and the latency of one sentence, of all engines in turn.

    python benchmarks/decoding.py --model DIR --input TEXT
    python benchmarks/decoding.py --model DIR --input TEXT --reference REFERENCE --saved_model EXPORT \\
        --ctranslate2 MODEL.ct2 --ctranslate2_python /path/to/python

DIR is the directory of a model of any type, EXPORT and MODEL.ct2 what `python -m nmt export` made of it.

Each engine is a process that has loaded its model and translated the text once; then they translate it in turn. Of
CTranslate2 there is one process for each dtype, patience and batch size of a grid; those with the best batch size are
measured. With a patience of 2 its search ends where ours does.

docs/translation-speed.md says how the models of its tables were trained.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import tables
from runner import Worker, answer, parser_of, turn

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

DTYPES, SIZES = ("float32", "int8"), (16, 32, 64)  # of CTranslate2, and the batch sizes that are tried
PATIENCES = (1, 2)
BEAM, LONGEST = 5, 200
SINGLE = 100  # lines that are translated one at a time


def ours(model):
    """Returns the function of `nmt translate`."""
    from nmt.load_tensorflow import load_tensorflow

    load_tensorflow(translates=True)  # as the command does: before anything else imports TensorFlow
    from nmt.decoding.options import DecodingOptions
    from nmt.decoding.side_by_side import use_cores_for_batches
    from nmt.system import load_system

    use_cores_for_batches()
    return load_system(Path(model)).translator(DecodingOptions(beam_size=BEAM)).best


def savedmodel(model):
    """Returns a function that calls an export as a server does: batches side by side, sorted by length."""
    from nmt.load_tensorflow import load_tensorflow

    tf = load_tensorflow(translates=True)  # as `nmt serve` does
    import tensorflow_text  # noqa: F401

    tf.config.threading.set_intra_op_parallelism_threads(1)
    loaded = tf.saved_model.load(model)
    serve, size = loaded.signatures["serving_default"], 128
    pool = ThreadPoolExecutor(os.cpu_count())

    def translate(lines):
        order = sorted(range(len(lines)), key=lambda number: -len(lines[number]))
        batches = [order[start : start + size] for start in range(0, len(order), size)]
        found = pool.map(lambda batch: serve(sources=tf.constant([lines[i] for i in batch])), batches)
        texts = {}
        for batch, result in zip(batches, found, strict=True):
            texts |= zip(batch, (text.decode() for text in result["translations"].numpy()), strict=True)
        return [texts[number] for number in range(len(lines))]

    translate.loaded = loaded  # owns the variables
    return translate


def ctranslate2(model, settings):
    """Returns a function that calls CTranslate2 with one thread for each translator."""
    import ctranslate2
    import sentencepiece

    path, directory = model.split(",")
    kind, patience, batch = settings.split(",")
    source, target = (
        sentencepiece.SentencePieceProcessor(model_file=f"{directory}/{side}.model") for side in ("source", "target")
    )
    translator = ctranslate2.Translator(path, compute_type=kind, inter_threads=os.cpu_count(), intra_threads=1)
    options = {"beam_size": BEAM, "patience": float(patience), "length_penalty": 1, "max_decoding_length": LONGEST}

    def translate(lines):
        tokens = source.encode([line.decode() for line in lines], out_type=str)
        found = translator.translate_batch(tokens, max_batch_size=int(batch), **options)
        return [target.decode(each.hypotheses[0]) for each in found]

    return translate


def serve(kind, model, text, output, *settings):
    """Writes the translations of a text to a file, then answers with the seconds of all lines or of a single one."""
    translate = {"ours": ours, "savedmodel": savedmodel, "ctranslate2": ctranslate2}[kind](model, *settings)
    lines = Path(text).read_bytes().split(b"\n")[:-1]
    Path(output).write_text("".join(f"{line}\n" for line in translate(lines)), encoding="utf-8")

    def seconds(asked):
        parts = [lines] if asked == "all" else [[line] for line in lines[:SINGLE]]
        return statistics.median(turn(lambda part=part: translate(part), 1) for part in parts)

    answer(seconds)


class Engine(Worker):
    """A process that translates a text, or single lines of it, whenever it is asked to."""

    def __init__(self, python, kind, model, text, output, *settings):
        self.output = output
        super().__init__(
            [python, __file__, "--engine", kind, model, text, output, *settings], stderr=subprocess.DEVNULL
        )
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
        import sacrebleu

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
    serve(*sys.argv[2:]) if sys.argv[1:2] == ["--engine"] else main()
