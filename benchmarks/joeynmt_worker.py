"""Updates a model of JoeyNMT for benchmarks/peers.py, in an environment with PyTorch.

    python joeynmt_worker.py JOEYNMT BATCHES.npz OPTIONS

OPTIONS is a JSON object. Reads lines from standard input: for the number of a batch, it makes an update with it and
prints the seconds; for "memory", it prints the peak memory of the process in MiB; for "libraries", what that peak was
after the import of PyTorch.
"""

import importlib.abc
import importlib.machinery
import json
import os
import sys
import unittest.mock
from types import SimpleNamespace

from runner import answer, own_memory, turn

# Packages that JoeyNMT's modules import for preparing data and for reports. What it trains with needs none of them.
UNUSED = ["datasets", "importlib_metadata", "matplotlib", "pandas", "sacrebleu", "sacremoses", "seaborn", "yaml"]
UNUSED += ["sentencepiece", "subword_nmt"]
SPECIALS = {"unk": "<unk>", "pad": "<pad>", "bos": "<s>", "eos": "</s>"}


class StandIn(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Replaces packages that are missing, with all that may be imported from them."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in UNUSED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return unittest.mock.MagicMock(__path__=[], __spec__=spec)

    def exec_module(self, module):
        pass


def configuration(options: dict) -> dict:
    """Returns the section `model` of a configuration of JoeyNMT."""
    size, dropout = options["embedding_size"], options["dropout"]
    embeddings = {"embedding_dim": size, "dropout": dropout}
    if options["model_type"] == "transformer":
        side = {"type": "transformer", "num_layers": 3, "num_heads": 4, "hidden_size": size, "ff_size": 4 * size}
        side |= {"dropout": dropout, "layer_norm": "pre", "embeddings": {**embeddings, "scale": True}}
        return {"tied_softmax": True, "encoder": side, "decoder": side}
    side = {"type": "recurrent", "rnn_type": "gru", "num_layers": 1, "hidden_size": options["state_size"]}
    side |= {"dropout": dropout, "embeddings": {**embeddings, "scale": False}}
    attention = {"attention": "bahdanau", "init_hidden": "bridge", "input_feeding": True, "hidden_dropout": dropout}
    return {"encoder": {**side, "bidirectional": True}, "decoder": {**side, **attention}}


def build(options: dict):
    """Returns a function that makes an update with a batch: JoeyNMT's step, as its `TrainManager` makes it."""
    import torch
    from joeynmt.model import build_model
    from joeynmt.vocabulary import Vocabulary

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
            loss, _, _, _ = forward(
                return_type="loss",
                src=batch.src,
                src_length=batch.src_length,
                src_mask=batch.src_mask,
                trg_input=batch.trg_input,
                trg=batch.trg,
                trg_mask=batch.trg_mask,
            )
            loss = batch.normalize(loss, normalization="batch", n_gpu=0)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad(set_to_none=True)
        if not torch.isfinite(loss):
            raise SystemExit("JoeyNMT's loss is not finite")

    return update


def joeynmt_batch(arrays, number: str):
    """Returns a batch of the file as JoeyNMT's own."""
    import torch
    from joeynmt.batch import Batch

    src, lengths, trg = (torch.from_numpy(arrays[f"{number}_{name}"]) for name in ("src", "src_length", "trg"))
    order = torch.argsort(lengths, descending=True, stable=True)  # as for its recurrent encoder
    return Batch(
        src=src[order],
        src_length=lengths[order],
        src_prompt_mask=None,
        trg=trg[order],
        trg_prompt_mask=None,
        indices=order,
        device=torch.device("cpu"),
        pad_index=1,
        eos_index=3,
    )


def main() -> None:
    checkout, path, options = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    sys.stdout = sys.stderr  # what JoeyNMT prints is no answer
    sys.path.insert(0, checkout)
    sys.dont_write_bytecode = True
    import numpy as np
    import torch

    torch.set_num_threads(int(os.environ.get("TF_NUM_INTRAOP_THREADS", 0)) or os.cpu_count())
    sys.meta_path.append(StandIn())  # the last: for what no other finds
    sys.modules["torch.utils.tensorboard"] = unittest.mock.MagicMock()
    libraries, arrays = own_memory(), np.load(path)
    update, batches = build(options), {}

    def answered(asked: str) -> float:
        if asked in ("memory", "libraries"):
            return libraries if asked == "libraries" else own_memory()
        if asked not in batches:
            batches[asked] = joeynmt_batch(arrays, asked)
        return turn(lambda: update(batches[asked]), 1)

    answer(answered)


if __name__ == "__main__":
    main()
