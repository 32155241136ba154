"""Trains the translation model and JoeyNMT's side by side on the same text, and prints BLEU after the same minutes.

    python -m nmt corpus multi30k --to corpus
    python -m nmt vocab --joint --source_dataset corpus/train.en --target_dataset corpus/train.de --size 6000 --to vocab
    python benchmarks/peers_quality.py --corpus corpus --vocabulary vocab/source.model --to FOLDER \
        --joeynmt CHECKOUT --joeynmt_python PYTHON --json FIGURES.json

CHECKOUT is one of JoeyNMT, and PYTHON an interpreter with all that it needs. Both systems start at the same time, each
on a core of its own, by their own commands. Minutes count from there, so imports and compilations are in them. Both
train the same Transformer: 128 units, 4 + 4 layers, 4 heads, feed-forwards of 512, pre-norm, all tables tied, dropout
and label smoothing of 0.1, in float32; with batches of 128 pairs, the loss of a token, the same Adam, rates and
clipping of the gradient's norm. Every 100 updates both validate on 16 sentences and keep their model. Afterwards each
system translates the test text with the last models that it kept in time, greedily, because JoeyNMT's search takes long
on a CPU; sacreBLEU, cased and detokenized.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import sacrebleu
import tables
from figures_log import write_log
from kept_models import translate

ROOT = Path(__file__).resolve().parents[1]
OURS = {"preset": "transformer-tiny", "tie_encoder_decoder_embeddings": True, "exponential_smoothing": 0.0, "seed": 1}
OURS |= {f"transformer_dropout_{place}": 0.1 for place in ("embeddings", "residual", "relu", "attn")}
OURS |= {"loss_function": "per-token-cross-entropy", "maxlen": 32, "beam_size": 1, "valid_metric": "loss"}
OURS |= {"valid_freq": 100, "keep": 1000, "patience": 1000}
STACK = {"type": "transformer", "num_layers": 4, "num_heads": 4, "hidden_size": 128, "ff_size": 512, "dropout": 0.1}
STACK |= {"embeddings": {"embedding_dim": 128, "scale": True}, "layer_norm": "pre"}
WORDS_OF = """
import sys, sentencepiece
model = sentencepiece.SentencePieceProcessor(sys.argv[1])
words = (i for i in range(len(model)) if not model.is_control(i) and not model.is_unknown(i))
print(*map(model.id_to_piece, words), sep="\\n")
"""


def write_corpus(options: argparse.Namespace) -> Path:
    """Writes the texts as JoeyNMT names them, with 16 sentences to validate on, and returns their folder."""
    folder = options.to / "text"
    folder.mkdir(parents=True)
    for name in ("train", "dev", "test"):
        for side in ("en", "de"):
            lines = (options.corpus / f"{name}.{side}").read_text().splitlines(keepends=True)
            (folder / f"{name}.{side}").write_text("".join(lines[:16] if name == "dev" else lines))
    return folder


def write_joeynmt_options(options: argparse.Namespace, text: Path) -> Path:
    """Writes JoeyNMT's configuration (YAML, of which JSON is a part) and its vocabulary."""
    pieces = subprocess.check_output([options.joeynmt_python, "-c", WORDS_OF, options.vocabulary], text=True)
    (vocabulary := options.to / "joeynmt.vocabulary").write_text(pieces)
    side = {"max_length": 32, "level": "bpe", "voc_file": str(vocabulary), "tokenizer_type": "sentencepiece"}
    side["tokenizer_cfg"] = {"model_file": str(options.vocabulary), "pretokenizer": "none"}
    found = {"name": "race", "joeynmt_version": "2.3.0", "model_dir": str(options.to / "joeynmt"), "use_cuda": False}
    found |= {"fp16": False, "random_seed": 1}
    found["data"] = {**{name: str(text / name) for name in ("train", "dev", "test")}, "dataset_type": "plain"}
    found["data"] |= {"src": {"lang": "en", **side}, "trg": {"lang": "de", **side}}
    found["testing"] = {"beam_size": 1, "batch_size": 80, "eval_metrics": ["bleu"]}
    found["training"] = {"optimizer": "adam", "adam_betas": [0.9, 0.98], "learning_rate": 0.003, "clip_grad_norm": 1.0}
    found["training"] |= {"scheduling": "warmupinversesquareroot", "learning_rate_warmup": 400, "label_smoothing": 0.1}
    found["training"] |= {"batch_size": 128, "normalization": "tokens", "epochs": 1000, "validation_freq": 100}
    found["training"] |= {"keep_best_ckpts": -1, "early_stopping_metric": "loss", "print_valid_sents": [0]}
    found["model"] = {"tied_embeddings": True, "tied_softmax": True, "encoder": STACK, "decoder": STACK}
    (path := options.to / "joeynmt.yaml").write_text(json.dumps(found, indent=1))
    return path


def train(options: argparse.Namespace, text: Path, configuration: Path) -> float:
    """Trains both systems for the most minutes, and returns when they started, in seconds of the clock."""
    given = dict(OURS, dictionaries=[str(options.vocabulary)] * 2)
    for name, kind in (("train", ""), ("dev", "valid_")):
        given |= {f"{kind}source_dataset": str(text / f"{name}.en"), f"{kind}target_dataset": str(text / f"{name}.de")}
    (path := options.to / "ours.json").write_text(json.dumps(given, indent=1))
    ours = [sys.executable, "-m", "nmt", "train", "-m", options.to / "ours", "--config", path]
    theirs = [options.joeynmt_python, "-m", "joeynmt", "train", configuration, "--skip-test"]
    begun, processes = time.time(), []
    for core, (name, command, folder) in enumerate([("ours", ours, ROOT), ("joeynmt", theirs, options.joeynmt)]):
        with (options.to / f"{name}.log").open("w") as log:
            pinned = ["taskset", "--cpu-list", str(core), *map(str, command)]
            processes.append(subprocess.Popen(pinned, cwd=folder, stdout=log, stderr=subprocess.STDOUT))
    ended, end = [], begun + 60 * max(options.minutes) + 30
    while not ended and time.time() < end:
        time.sleep(1)
        ended = [process for process in processes if process.poll() is not None]
    for process in processes:
        process.terminate()
        process.wait()
    if ended:
        sys.exit(f"peers_quality.py: a training ended early; {options.to}/*.log say why")
    return begun


def translate_joeynmt(options: argparse.Namespace, configuration: Path, checkpoint: Path) -> list[str]:
    found = json.loads(configuration.read_text())
    found["testing"]["load_model"] = str(checkpoint)
    (path := options.to / "translate.yaml").write_text(json.dumps(found))
    command = [options.joeynmt_python, "-m", "joeynmt", "test", path, "-o", options.to / "joeynmt_out"]
    with (options.to / "translate.log").open("w") as log:
        subprocess.run(command, cwd=options.joeynmt, stdout=log, stderr=log, check=True)
    return (options.to / "joeynmt_out.test").read_text().splitlines()


def newest(folder: Path, ending: str, until: float) -> Path:
    """Returns the last kept model of a training that was written until a second of the clock."""
    kept = [path for path in folder.glob(f"*.{ending}") if path.stem.isdigit() and path.stat().st_mtime <= until]
    if not kept:
        sys.exit(f"peers_quality.py: {folder} had kept no model by then; give more --minutes")
    return max(kept, key=lambda path: int(path.stem))


def figures(options: argparse.Namespace, configuration: Path, begun: float) -> list[dict]:
    """Returns updates and BLEU of both systems after each number of minutes."""
    sources, references = ((options.to / "text" / f"test.{side}").read_text().splitlines() for side in ("en", "de"))
    rows = []
    for minutes in options.minutes:
        until = begun + 60 * minutes
        ours = newest(options.to / "ours" / "kept", "npz", until)
        theirs = newest(options.to / "joeynmt", "ckpt", until)
        found = {
            "ours": (ours, translate(options.to / "ours", ours, [line.encode() for line in sources], 1)),
            "JoeyNMT": (theirs, translate_joeynmt(options, configuration, theirs)),
        }
        for name, (path, lines) in found.items():
            bleu = sacrebleu.corpus_bleu(lines, [references]).score
            rows.append({"system": name, "minutes": minutes, "updates": int(path.stem), "BLEU": bleu})
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, required=True, help="folder with {train,dev,test}.{en,de}")
    parser.add_argument("--vocabulary", type=Path, required=True, help="a SentencePiece model for both sides")
    parser.add_argument("--joeynmt", type=Path, required=True, metavar="CHECKOUT")
    parser.add_argument("--joeynmt_python", required=True, metavar="PYTHON")
    parser.add_argument("--minutes", type=float, nargs="+", default=[10, 20, 30])
    parser.add_argument("--to", type=Path, required=True, help="new folder for the trainings")
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file")
    options = parser.parse_args()
    for name in ("corpus", "vocabulary", "joeynmt", "to"):  # JoeyNMT runs in its own folder
        setattr(options, name, getattr(options, name).resolve())
    text = write_corpus(options)
    configuration = write_joeynmt_options(options, text)
    rows = figures(options, configuration, train(options, text, configuration))
    print(*tables.peers_quality({"figures": rows})[0], sep="\n")
    if options.json:
        write_log(options.json, "peers_quality", {"minutes": options.minutes}, rows)


if __name__ == "__main__":
    main()
