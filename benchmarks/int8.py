"""Compares `nmt translate` with CTranslate2 in float32 and in int8: BLEU, equal translations and time.

    python -m nmt export -m model --to model.ct2 --format ctranslate2
    python benchmarks/int8.py model model.ct2 test.en test.de
    python benchmarks/int8.py model model.ct2 test.en test.de --json INT8.json

All translate the same lines in turn, with beam 5 and costs divided by lengths, on all cores. Each row has BLEU, the
share of lines with the translation of `nmt translate`, sentences/s, and the ratio of its time to that of
`nmt translate`: the median over the rounds, with its quartiles.
"""

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import ctranslate2
import sacrebleu
import sentencepiece
import tables
from figures_log import model_facts, write_log
from interleaved import seconds_of

sys.path.insert(0, str(Path(__file__).parents[1]))

from nmt.decoding.options import DecodingOptions
from nmt.system import load_system

BATCH = 80
TYPES = ("float32", "int8")


def ours(system):
    """Returns the function from lines to their translations."""
    return system.translator(DecodingOptions(batch_size=BATCH)).best


def theirs(model, converted, kind):
    """Returns the same function of CTranslate2, computing in one type."""
    names = (str(model / f"{side}.model") for side in ("source", "target"))
    source, target = map(sentencepiece.SentencePieceProcessor, names)
    translator = ctranslate2.Translator(str(converted), compute_type=kind, intra_threads=os.cpu_count())
    # With less patience, its search ends before all hypotheses that ours compares are complete.
    options = {"beam_size": 5, "patience": 2, "length_penalty": 1, "max_decoding_length": 200}

    def translate(lines):
        found = translator.translate_batch(source.encode(lines, out_type=str), max_batch_size=BATCH, **options)
        return [target.decode(each.hypotheses[0]) for each in found]

    return translate


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, metavar="MODEL", help="model directory with SentencePiece vocabularies")
    parser.add_argument("converted", type=Path, metavar="CT2", help="its export for CTranslate2")
    parser.add_argument("source", type=Path, metavar="SOURCE", help="text to translate")
    parser.add_argument("references", type=Path, metavar="REFERENCES", help="its references")
    parser.add_argument("--rounds", type=int, default=5, help="default: 5")
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error(f"--rounds {options.rounds} gives no quartiles; give 2 or more")
    for path in (options.model, options.converted, options.source, options.references):
        if not path.exists():
            parser.error(f"{path} does not exist; give a model directory, its export, a text and its references")
    lines, references = (path.read_text("utf-8").splitlines() for path in (options.source, options.references))
    system = load_system(options.model)
    systems = {"nmt translate": ours(system)}
    systems |= {f"CTranslate2, {kind}": theirs(options.model, options.converted, kind) for kind in TYPES}
    texts = {name: translate(lines) for name, translate in systems.items()}
    calls = {name: lambda translate=translate: translate(lines) for name, translate in systems.items()}
    seconds = seconds_of(calls, options.rounds)
    figures = {
        name: {
            "bleu": sacrebleu.corpus_bleu(found, [references]).score,
            "equal": sum(a == b for a, b in zip(found, texts["nmt translate"], strict=True)) / len(lines),
            "seconds": seconds[name],
        }
        for name, found in texts.items()
    }
    given = {"sentences": len(lines), "rounds": options.rounds, "ctranslate2": ctranslate2.__version__}
    given |= model_facts(system.config)
    if options.json:
        write_log(options.json, "int8", given, figures)
    for table in tables.int8({"options": given, "figures": figures}):
        print("\n".join(table))


if __name__ == "__main__":
    main()
