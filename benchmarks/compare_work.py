"""What benchmarks/compare.py measures. Each function times the checkouts in turn."""

import contextlib
import hashlib
import itertools
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.compare_sides import PLACE, Failed, Side, TaskWorker, Training
from benchmarks.runner import orders

Figures = dict[str, dict[str, list[float]]]  # values of the rounds, by figure and side
DTYPES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
SIDES = ("source", "target")
LAYERS = (((80, 1024), "float32"), ((4096, 1024), "float32"), ((4096, 1024), "bfloat16"))
LAYER_MODES = {"eager": "eager", "tf.function": "tf.function", "XLA": "xla"}  # as layer.py has them
PASSES = {"forward": "forward", "both": "forward+backward"}
MANY = 3000  # sentences


def transformer(size: int, depth: int) -> dict[str, Any]:
    """Returns the options of a Transformer without dropout."""
    found = {"model_type": "transformer", "transformer_num_heads": 4, "tie_decoder_embeddings": True}
    found |= {"embedding_size": size, "state_size": size, "transformer_ffn_hidden_size": 4 * size}
    found |= {"transformer_enc_depth": depth, "transformer_dec_depth": depth}
    return found | {f"transformer_dropout_{place}": 0.0 for place in ("embeddings", "residual", "relu", "attn")}


MODELS = {"RNN": {"embedding_size": 256, "state_size": 512}, "Transformer": transformer(256, 3)}
TRANSLATES = transformer(128, 2)


def write_text(folder: Path, words: int, lengths: tuple[int, int], pairs: int) -> dict[str, Any]:
    """Writes made-up sentence pairs that correspond word for word, and returns the options that name them."""
    generator = random.Random(0)
    folder.mkdir(parents=True, exist_ok=True)
    texts = [[generator.randrange(words - 2) for _ in range(generator.randint(*lengths))] for _ in range(pairs)]
    options: dict[str, Any] = {"maxlen": lengths[1] + 1, "valid_freq": 1_000_000, "beam_size": 1, "batch_size": 80}
    for side in SIDES:
        ids = {"eos": 0, "UNK": 1, **{f"{side}{number}": number + 2 for number in range(words - 2)}}
        (folder / f"{side}.json").write_text(json.dumps(ids))
        lines = [" ".join(f"{side}{number}" for number in text) + "\n" for text in texts]
        (folder / f"train.{side}").write_text("".join(lines))
        (folder / f"valid.{side}").write_text(lines[0])
        options |= {f"{side}_dataset": f"{folder}/train.{side}", f"valid_{side}_dataset": f"{folder}/valid.{side}"}
    return options | {"dictionaries": [f"{folder}/{side}.json" for side in SIDES]}


def write_options(name: str, options: Mapping[str, Any]) -> Path:
    path = PLACE / f"{name}.json"
    path.write_text(json.dumps({"layer_normalization_type": "layernorm", **options}))
    return path


def attempt(side: Side, call: Callable[[], float]) -> float | None:
    """Returns what a call returns, or None where a checkout cannot do what is asked, and says why."""
    try:
        return call()
    except Failed as error:
        print(f"    {side.name}: {error}", file=sys.stderr)
        return None


def in_turn(calls: Mapping[Side, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Returns what the call of each side returns in each round. A side that fails is left out."""
    found: dict[str, list[float]] = {side.name: [] for side in calls}
    for order in itertools.islice(orders(calls), rounds):
        for side in order:
            if side.name in found and (value := attempt(side, calls[side])) is not None:
                found[side.name].append(value)
            else:
                found.pop(side.name, None)
    return found


def updates(sides: Sequence[Side], rounds: int, _: Sequence[str], model: str, dtype: str, full: bool) -> Figures:
    """Measures updates, the first one from the start of the command on, and the peak memory of these trainings.

    In full, it measures the first update without caches too.
    """
    name, text = f"{model} {dtype}", write_text(PLACE / "updates", 8000, (40, 40), 2000)
    options = write_options(name, {**text, **MODELS[model], "dtype": DTYPES[dtype]})
    found = {}
    if full:
        calls = {side: partial(_first_update, side, options) for side in sides}
        found[f"{name}: first update, empty caches"] = in_turn(calls, 2)
    _fill_caches(sides, name, options)
    with contextlib.ExitStack() as stack:
        trainings = {side: stack.enter_context(Training(side, options)) for side in sides}
        first = in_turn({side: partial(training.seconds, 1) for side, training in trainings.items()}, 1)
        calls = {side: partial(training.seconds, 1) for side, training in trainings.items() if side.name in first}
        in_turn(calls, 1)  # warm-up
        seconds = in_turn(calls, rounds)
        peaks = {side.name: [trainings[side].end()] for side in calls}
    return found | {f"{name}: update": seconds, f"{name}: first update": first, f"{name}: peak memory": peaks}


def _first_update(side: Side, options: Path) -> float:
    """Returns the seconds of the first update with empty caches."""
    with _folder() as cache, Training(replace(side, cache=Path(cache)), options) as training:
        return training.seconds(1)


def _fill_caches(sides: Sequence[Side], name: str, options: Path) -> None:
    """Makes a first update with each cache whose checkout has not made it yet, two at a time."""

    def fill(side: Side) -> None:
        mark, digest = side.cache / f"{name}.filled", side.digest()
        if not mark.exists() or mark.read_text() != digest:
            with contextlib.suppress(Failed), Training(side, options) as training:  # the measured training says why
                training.seconds(1)
            mark.write_text(digest)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(fill, {side.cache: side for side in sides}.values()))


def translation(sides: Sequence[Side], rounds: int, _: Sequence[str]) -> Figures:
    """Measures `translate` with a Transformer that the first side has trained, and one sentence alone in its export."""
    text = write_text(PLACE / "translation", 1000, (12, 15), 8000)
    trained = _trained(sides[0], {**text, **TRANSLATES})
    if trained is None:
        return {}
    lines = Path(text["source_dataset"]).read_text().splitlines()
    taken = {}
    for count in (1, MANY):
        path = PLACE / f"{count}.txt"
        path.write_text("\n".join(lines[:count]) + "\n")
        command = ("-m", "nmt", "translate", "-m", trained, "-i", path, "-o", os.devnull)
        taken[count] = in_turn({side: partial(side.seconds, *command) for side in sides}, rounds - 1)
    one, many = taken.values()
    further = {
        name: [(b - a) * 1000 / (MANY - 1) for a, b in zip(one[name], many[name], strict=True)]
        for name in one.keys() & many.keys()
    }
    found = {"translate: start and one sentence": one, "translate: 1,000 more sentences": further}
    with _folder() as exports:
        for checkout, side in {side.checkout: side for side in sides}.items():
            export = ("-m", "nmt", "export", "-m", trained, "--to", Path(exports, checkout.name))
            attempt(side, partial(side.seconds, *export))
        task = ("saved model", {"exports": exports, "lines": lines[:5]})
        alone = in_workers(sides, {"alone": task}, 5 * rounds, environment={"TF_ENABLE_ONEDNN_OPTS": "0"})["alone"]
    return found | {"SavedModel: one sentence": {name: [s / 5 for s in each] for name, each in alone.items()}}


def _trained(side: Side, options: Mapping[str, Any]) -> Path | None:
    """Returns the folder of a model, which is trained unless an earlier run has done so with the same options."""
    path = write_options("translate", {**options, "learning_rate": 0.001, "finish_after": 300})
    folder = side.cache / f"translate {hashlib.sha256(path.read_bytes()).hexdigest()[:8]}"
    train = partial(side.seconds, "-m", "nmt", "train", "-m", folder, "--config", path)
    return None if attempt(side, train) is None else folder


def layer(sides: Sequence[Side], rounds: int, names: Sequence[str]) -> Figures:
    """Measures the forward pass of a layer and both passes."""
    tasks = {}
    for (shape, dtype), mode, passes in itertools.product(LAYERS, LAYER_MODES, PASSES):
        given = {"shape": shape, "dtype": dtype, "mode": LAYER_MODES[mode], "passes": PASSES[passes]}
        tasks[f"layer {shape} {dtype}: {mode}, {passes}"] = ("layer", given)
    return in_workers(sides, tasks, 2 * rounds + 1, names)


def fit(sides: Sequence[Side], rounds: int, names: Sequence[str]) -> Figures:
    """Measures steps of `fit` of narrow residual layers."""
    tasks = {f"fit, {units} units": ("fit", {"units": units, "mode": "default"}) for units in (64, 256)}
    return in_workers(sides, tasks, 2 * rounds, names)


def imports(sides: Sequence[Side], rounds: int, _: Sequence[str]) -> Figures:
    """Measures the import of the package."""
    calls = {side: partial(side.seconds, "-c", "import rmsnorm_tf") for side in sides}
    return {"import rmsnorm_tf": in_turn(calls, rounds - 2)}


def in_workers(
    sides: Sequence[Side],
    tasks: Mapping[str, tuple[str, dict[str, Any]]],
    rounds: int,
    names: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Figures:
    """Returns the seconds of tasks, or of those with these names, in a process of each side.

    A task has a kind, as in compare_worker.py, and its arguments.
    """
    with contextlib.ExitStack() as stack:
        workers = {side: stack.enter_context(TaskWorker(side, environment)) for side in sides}
        found = {}
        for name, task in tasks.items():
            if not names or name in names:
                calls = {side: partial(worker.seconds, *task) for side, worker in workers.items()}
                in_turn(calls, 1)  # prepares it
                found[name] = in_turn(calls, rounds)
        return found


def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(dir=PLACE)
