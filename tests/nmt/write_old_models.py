"""Writes models of every kind to a new folder: `PYTHONPATH=TREE python write_old_models.py DIR`,
with a patched tree.

It wrote `tests/data/golden/models`. The files there never change: they show that old models still
load.
"""

import random
import shutil
import subprocess
import sys
from pathlib import Path

LETTERS = "abcdefgh"
LINES = {"train": 400, "dev": 20, "test": 12}
TRAIN = """train --source_dataset train.en --target_dataset train.de --valid_source_dataset dev.en
    --valid_target_dataset dev.de --embedding_size 8 --learning_rate 0.02
    --batch_size 40 --maxlen 11 --translation_maxlen 12 --valid_freq 150 --finish_after 300 --seed 1"""
TRANSFORMER = """ --model_type transformer --state_size 8 --transformer_num_heads 2 --transformer_ffn_hidden_size 16
    --transformer_enc_depth 1 --transformer_dec_depth 2 --tie_decoder_embeddings"""
KINDS = ("none", "layernorm", "rmsnorm", "prmsnorm", "l2norm")
TRANSFORMER_KINDS = ("layernorm", "rmsnorm")


def write_corpus(directory: Path) -> None:
    """Writes words of random letters; the translation has each in upper case, every other letter twice."""
    rng = random.Random(3)
    for part, lines in LINES.items():
        sources = [rng.choices(LETTERS, k=rng.randint(1, 5)) for _ in range(lines)]
        targets = [[x.upper() * (1 + (x in LETTERS[::2])) for x in line] for line in sources]
        for side, texts in (("en", sources), ("de", targets)):
            (directory / f"{part}.{side}").write_text(
                "".join(f"{''.join(text)}\n" for text in texts)
            )


def write_models(directory: Path) -> None:
    """Writes a model of each kind, its costs and its translations, and exports the model with rmsnorm."""

    def nmt(words: str, *more: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "nmt", *words.split(), *more], cwd=directory, check=True
        )

    nmt("vocab --source_dataset train.en --target_dataset train.de --to vocabulary --size 40")
    rnns = {kind: f"{TRAIN} --state_size 12 --rnn_dropout_hidden 0.1" for kind in KINDS}
    transformers = {f"transformer-{kind}": f"{TRAIN} {TRANSFORMER}" for kind in TRANSFORMER_KINDS}
    for name, command in {**rnns, **transformers}.items():
        vocabularies = ("vocabulary/source.model", "vocabulary/target.model")
        nmt(
            f"{command} -m {name} --layer_normalization_type {name.split('-')[-1]} --dictionaries",
            *vocabularies,
        )
        nmt(f"score -m {name} -s test.en -t test.de -o {name}.costs")
        nmt(f"translate -m {name} -i test.en -o {name}.translated -n")
        shutil.rmtree(directory / name / "logs")
    nmt("export -m rmsnorm --to saved_model -n")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir()
    write_corpus(target)
    write_models(target)
