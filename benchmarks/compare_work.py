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
LAYER_MODES = ("eager", "tf.function", "XLA")
STEPS = 5  # of a call of `fit`, as in fit.py
MANY = 3000  # sentences


def transformer(size: int, depth: int) -> dict[str, Any]:
    """Returns the options of a Transformer without dropout."""
    found = {"model_type": "transformer", "transformer_num_heads": 4, "tie_decoder_embeddings": True}
    found |= {"embedding_size": size, "state_size": size, "transformer_ffn_hidden_size": 4 * size}
    found |= {"transformer_enc_depth": depth, "transformer_dec_depth": depth}
    return found | {f"transformer_dropout_{place}": 0.0 for place in ("embeddings", "residual", "relu", "attn")}


MODELS = {"RNN": {"embedding_size": 256, "state_size": 512}, "Transformer": transformer(256, 3)}
TRANSLATES = {"RNN": {"embedding_size": 64, "state_size": 128}, "Transformer": transformer(128, 2)}


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


def updates(sides: Sequence[Side], rounds: int, _: Sequence[str], model: str, dtype: str) -> Figures:
    """Measures updates, the first one from the start of the command on, and the peak memory of these trainings."""
    name, options = _update_options(model, dtype)
    _fill_caches(sides, name, options)
    with contextlib.ExitStack() as stack:
        trainings = {side: stack.enter_context(Training(side, options)) for side in sides}
        first = in_turn({side: partial(training.seconds, 1) for side, training in trainings.items()}, 1)
        calls = {side: partial(training.seconds, 1) for side, training in trainings.items() if side.name in first}
        in_turn(calls, 1)  # warm-up
        seconds = in_turn(calls, rounds)
        peaks = {side.name: [trainings[side].end()] for side in calls}
    return {f"{name}: update": seconds, f"{name}: first update": first, f"{name}: peak memory": peaks}


def first_updates(sides: Sequence[Side], rounds: int, _: Sequence[str], model: str, dtype: str) -> Figures:
    """Measures the first update when no cache has anything."""
    name, options = _update_options(model, dtype)

    def first(side: Side) -> float:
        with _folder() as cache, Training(replace(side, cache=Path(cache)), options) as training:
            return training.seconds(1)

    calls = {side: partial(first, side) for side in sides}
    return {f"{name}: first update, empty caches": in_turn(calls, 2)}


def _update_options(model: str, dtype: str) -> tuple[str, Path]:
    name = f"{model} {dtype}"
    text = write_text(PLACE / "updates", 8000, (40, 40), 2000)
    return name, write_options(name, {**text, **MODELS[model], "dtype": DTYPES[dtype]})


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


def translation(sides: Sequence[Side], rounds: int, _: Sequence[str], model: str) -> Figures:
    """Measures `translate` with a model that the first side has trained, and one sentence alone in its export."""
    text = write_text(PLACE / "translation", 1000, (12, 15), 8000)
    trained = _trained(sides[0], f"translate {model}", {**text, **TRANSLATES[model]})
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
    further = {name: [(b - a) * 1000 / (MANY - 1) for a, b in zip(one[name], many[name], strict=True)] for name in many}
    found = {f"{model}, translate: start and one sentence": one, f"{model}, translate: 1,000 more sentences": further}
    with contextlib.ExitStack() as stack:
        exports = {side: Path(stack.enter_context(_folder()), "export") for side in sides}
        written = in_turn({side: partial(_export, side, trained, folder) for side, folder in exports.items()}, 1)
        tasks = {
            s: ("saved model", {"folder": str(exports[s]), "lines": lines[:5]}) for s in sides if s.name in written
        }
        alone = in_workers({"alone": tasks}, 5 * rounds, {"TF_ENABLE_ONEDNN_OPTS": "0"})["alone"]
    return found | {f"{model}, SavedModel: one sentence": {name: [s / 5 for s in each] for name, each in alone.items()}}


def _trained(side: Side, name: str, options: Mapping[str, Any]) -> Path | None:
    """Returns the folder of a model, which is trained unless an earlier run has done so with the same options."""
    path = write_options(name, {**options, "learning_rate": 0.001, "finish_after": 300})
    folder = side.cache / f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()[:8]}"
    train = partial(side.seconds, "-m", "nmt", "train", "-m", folder, "--config", path)
    return None if attempt(side, train) is None else folder


def _export(side: Side, model: Path, folder: Path) -> float:
    return side.seconds("-m", "nmt", "export", "-m", model, "--to", folder)


def layer(sides: Sequence[Side], rounds: int, names: Sequence[str]) -> Figures:
    """Measures the forward pass of a layer and both passes."""
    tasks = {}
    for (shape, dtype), mode, both in itertools.product(LAYERS, LAYER_MODES, (False, True)):
        given = {"shape": shape, "dtype": dtype, "mode": mode, "both": both}
        tasks[f"layer {shape} {dtype}: {mode}, {'both' if both else 'forward'}"] = ("layer", given)
    return in_workers(_for_all(sides, tasks, names), 2 * rounds + 1)


def fit(sides: Sequence[Side], rounds: int, names: Sequence[str]) -> Figures:
    """Measures steps of `fit` of narrow residual layers."""
    tasks = {f"fit, {units} units: {STEPS} steps": ("fit", {"units": units, "mode": "default"}) for units in (64, 256)}
    return in_workers(_for_all(sides, tasks, names), 2 * rounds)


def imports(sides: Sequence[Side], rounds: int, _: Sequence[str]) -> Figures:
    """Measures the import of the package."""
    calls = {side: partial(side.seconds, "-c", "import rmsnorm_tf") for side in sides}
    return {"import rmsnorm_tf": in_turn(calls, rounds - 2)}


Tasks = dict[str, dict[Side, tuple[str, dict[str, Any]]]]  # kind and arguments of a task, by figure and side


def _for_all(sides: Sequence[Side], tasks: Mapping[str, tuple], names: Sequence[str]) -> Tasks:
    """Returns the tasks of these names, or all if there are none, for all sides."""
    return {name: dict.fromkeys(sides, task) for name, task in tasks.items() if not names or name in names}


def in_workers(tasks: Tasks, rounds: int, environment: Mapping[str, str] | None = None) -> Figures:
    """Returns the seconds of tasks in a process of each side."""
    with contextlib.ExitStack() as stack:
        sides = {side for by_side in tasks.values() for side in by_side}
        workers = {side: stack.enter_context(TaskWorker(side, environment)) for side in sides}
        found = {}
        for name, by_side in tasks.items():
            calls = {side: partial(workers[side].seconds, *task) for side, task in by_side.items()}
            in_turn(calls, 1)  # prepares it
            found[name] = in_turn(calls, rounds)
        return found


def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(dir=PLACE)
