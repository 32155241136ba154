"""One engine of `decoding.py`, in a process of its own: translates the same lines whenever it is asked to.

    python benchmarks/decoding_engine.py ENGINE MODEL TEXT OUTPUT [TYPE,PATIENCE,BATCH]

ENGINE is `ours` (MODEL is a model directory), `savedmodel` (an export) or `ctranslate2` (a model of CTranslate2
beside the vocabularies of a model directory, `MODEL,DIRECTORY`; it alone takes the last argument). For each line of its
standard input it prints seconds: those of the whole text after `all`, the median of single lines after `one`. It writes
the translations of the whole text to OUTPUT.
"""

import os
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from runner import answer, turn

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
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


def main():
    engine, model, text, output, *settings = sys.argv[1:]
    translate = {"ours": ours, "savedmodel": savedmodel, "ctranslate2": ctranslate2}[engine](model, *settings)
    lines = Path(text).read_bytes().split(b"\n")[:-1]
    Path(output).write_text("".join(f"{line}\n" for line in translate(lines)), encoding="utf-8")

    def seconds(asked):
        parts = [lines] if asked == "all" else [[line] for line in lines[:SINGLE]]
        return statistics.median(turn(lambda part=part: translate(part), 1) for part in parts)

    answer(seconds)


if __name__ == "__main__":
    main()
