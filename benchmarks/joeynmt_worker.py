"""Updates a model of JoeyNMT for benchmarks/peers.py, in an environment that has JoeyNMT.

    python joeynmt_worker.py BATCHES.npz OPTIONS

OPTIONS is a JSON object. For each number of a batch on standard input, it makes an update with it
and prints the seconds.
"""

import functools
import json
import os
import sys
from types import SimpleNamespace

import numpy as np
import torch
from joeynmt.batch import Batch
from joeynmt.model import build_model
from joeynmt.vocabulary import Vocabulary
from runner import answer, turn

TAKEN = ("src", "src_length", "src_mask", "trg_input", "trg", "trg_mask")  # by the model
SPECIALS = {"unk": "<unk>", "pad": "<pad>", "bos": "<s>", "eos": "</s>"}


def configuration(options: dict) -> dict:
    """Returns the section `model` of a configuration of JoeyNMT."""
    size = options["embedding_size"]
    dropout = options["dropout"]
    embeddings = {"embedding_dim": size, "dropout": dropout}
    if options["model_type"] == "transformer":
        side = {
            "type": "transformer",
            "num_layers": 3,
            "num_heads": 4,
            "hidden_size": size,
            "ff_size": 4 * size,
            "dropout": dropout,
            "layer_norm": "pre",
            "embeddings": {**embeddings, "scale": True},
        }
        return {"tied_softmax": True, "encoder": side, "decoder": side}
    side = {
        "type": "recurrent",
        "rnn_type": "gru",
        "num_layers": 1,
        "hidden_size": options["state_size"],
        "dropout": dropout,
        "embeddings": {**embeddings, "scale": False},
    }
    attention = {
        "attention": "bahdanau",
        "init_hidden": "bridge",
        "input_feeding": True,
        "hidden_dropout": dropout,
    }
    return {"encoder": {**side, "bidirectional": True}, "decoder": {**side, **attention}}


def build(options: dict):
    """Returns a function that makes an update with a batch, as JoeyNMT's `TrainManager` does."""
    torch.manual_seed(1)
    ids = {f"{name}_id": number for number, name in enumerate(SPECIALS)}
    names = {f"{name}_token": token for name, token in SPECIALS.items()}
    special = SimpleNamespace(**ids, **names, sep_token=None, sep_id=None, lang_tags=[])
    words = Vocabulary([f"w{number}" for number in range(options["vocabulary"] - 2)], special)
    model = build_model(configuration(options), src_vocab=words, trg_vocab=words)
    model.loss_function = ("crossentropy", 0.1)
    model.train()
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    forward = torch.compile(model, dynamic=False) if options["mode"] == "compiled" else model
    in_bfloat16 = options["mode"] == "bfloat16"

    def update(batch) -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=in_bfloat16):
            loss, *_ = forward(return_type="loss", **{name: getattr(batch, name) for name in TAKEN})
            loss = batch.normalize(loss, normalization="batch", n_gpu=0)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad(set_to_none=True)
        if not torch.isfinite(loss):
            raise SystemExit("JoeyNMT's loss is not finite")

    return update


def joeynmt_batch(arrays, number: int):
    """Returns a batch of the file as JoeyNMT's own."""
    names = ("src", "src_length", "trg")
    src, lengths, trg = (torch.from_numpy(arrays[f"{number}_{name}"]) for name in names)
    return Batch(
        src=src,
        src_length=lengths,
        src_prompt_mask=None,
        trg=trg,
        trg_prompt_mask=None,
        indices=torch.arange(len(src)),
        device=torch.device("cpu"),
        pad_index=1,
        eos_index=3,
    )


def main() -> None:
    torch.set_num_threads(os.cpu_count())
    made = functools.cache(functools.partial(build, json.loads(sys.argv[2])))
    batches = functools.cache(functools.partial(joeynmt_batch, np.load(sys.argv[1])))

    def seconds(number: int) -> float:
        update = made()
        batch = batches(number)
        return turn(lambda: update(batch), 1)

    answer(seconds)


if __name__ == "__main__":
    main()
