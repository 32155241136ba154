"""Translates a test text with every kept model of some trainings, and prints BLEU beside their validations.

    python benchmarks/kept_models.py MODEL... --source test.en --reference test.de --json FIGURES.json

The models were trained with `--keep N`; beam 5, `-n`, BLEU of sacreBLEU, cased and detokenized. Run it in the tree that
trained the models, which has their kinds of normalization.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, os.getcwd())  # a patched copy is not installed

import sacrebleu

from nmt.decoding.metrics import read_lines
from nmt.decoding.options import DecodingOptions
from nmt.system import load_system

BEAM = 5


def translate(directory, checkpoint, lines, beam_size=BEAM):
    """Returns the translations by a kept model of a training."""
    with tempfile.TemporaryDirectory() as folder:
        for path in directory.iterdir():
            if path.is_file() and path.name not in ("best.npz", "last.npz"):
                shutil.copy(path, folder)
        shutil.copy(checkpoint, Path(folder, "best.npz"))
        translator = load_system(Path(folder)).translator(DecodingOptions(beam_size=beam_size))
    return translator.best(lines)


def figures(directory, lines, references):
    """Returns options, versions and validations of a training, each with the BLEU of the kept model on the test."""
    options, versions, progress = (
        json.loads((directory / f"{name}.json").read_text()) for name in ("config", "versions", "progress")
    )
    validations = []
    for each in progress["validations"]:
        names = ("update", "seconds", "valid_loss", "bleu", "chrf")
        found = {name: each[name] for name in names}
        if (checkpoint := directory / "kept" / f"{each['update']}.npz").exists():
            found["test_bleu"] = sacrebleu.corpus_bleu(translate(directory, checkpoint, lines), [references]).score
        validations.append(found)
        print(table_row(directory.name, found), flush=True)
    settings = {name: value for name, value in options.items() if not name.endswith(("_dataset", "dictionaries"))}
    return {"options": settings, "versions": versions, "validations": validations}


def table_row(name, found):
    """Returns a line of the table."""
    test = f"{found['test_bleu']:.1f}" if "test_bleu" in found else ""
    minutes, loss = f"{found['seconds'] / 60:.0f}", f"{found['valid_loss']:.2f}"
    return f"| {name} | {found['update']:,} | {minutes} | {loss} | {found['bleu']:.1f} | {test} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path, metavar="MODEL", help="directory of a training")
    parser.add_argument("--source", required=True, type=Path, help="test text")
    parser.add_argument("--reference", required=True, type=Path, help="its translation")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    options = parser.parse_args()
    lines = [line.encode() for line in read_lines(options.source)]
    references = read_lines(options.reference)
    if len(lines) != len(references):
        parser.error(f"--source has {len(lines)} lines and --reference {len(references)}; give a line for each")
    print("| | updates | minutes | validation loss a word | validation BLEU | test BLEU |\n|---|---|---|---|---|---|")
    found = {directory.name: figures(directory, lines, references) for directory in options.models}
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
