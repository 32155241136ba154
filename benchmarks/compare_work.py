"""What benchmarks/compare.py measures. Each function times the checkouts in turn."""

import contextlib
import hashlib
import itertools
import json
import random
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.compare_sides import PLACE, Failed, Side, TaskWorker, Training, Translation
from benchmarks.runner import orders
from benchmarks.updates import transformer_options

Figures = dict[str, dict[str, list[float]]]  # values of the rounds, by figure and side
DTYPES = {"float32": "float32", "bfloat16": "mixed_bfloat16"}
SIDES = ("source", "target")
LAYERS = (((80, 1024), "float32"), ((4096, 1024), "float32"), ((4096, 1024), "bfloat16"))
MODES = ("eager", "tf.function", "xla")  # as layer.py has them
PASSES = ("forward", "forward+backward")
MANY = 400  # sentences of `translate`, which a pipe can hold, and updates of its model
TRAINED = 250
MODELS = {
    "RNN": {"embedding_size": 256, "state_size": 512, "batch_size": 80},
    "Transformer": {**transformer_options(256, 2), "batch_size": 40},
}


def write_text(folder: Path, words: int, lengths: tuple[int, int], pairs: int) -> dict[str, Any]:
    """Writes made-up pairs, equal word for word, and returns the options that name them."""
    folder.mkdir(parents=True, exist_ok=True)
    options: dict[str, Any] = {"maxlen": lengths[1] + 1, "valid_freq": 1_000_000}
    options |= {"beam_size": 1, "batch_size": 80}
    for side in SIDES:
        generator = random.Random(0)
        known = ["eos", "UNK", *(f"{side}{number}" for number in range(words - 2))]
        (folder / f"{side}.json").write_text(json.dumps({word: i for i, word in enumerate(known)}))
        lines = []
        for _ in range(pairs):
            text = generator.choices(known[2:], k=generator.randint(*lengths))
            lines.append(" ".join(text) + "\n")
        (folder / f"train.{side}").write_text("".join(lines))
        (folder / f"valid.{side}").write_text(lines[0])
        options[f"{side}_dataset"] = f"{folder}/train.{side}"
        options[f"valid_{side}_dataset"] = f"{folder}/valid.{side}"
    return options | {"dictionaries": [f"{folder}/{side}.json" for side in SIDES]}


def write_options(name: str, options: Mapping[str, Any]) -> Path:
    path = PLACE / f"{name}.json"
    path.write_text(json.dumps({"layer_normalization_type": "layernorm", **options}))
    return path


def attempt(side: Side, call: Callable[[], float]) -> float | None:
    """Returns what a call returns, or None, with a message, where a checkout cannot do it."""
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


def updates(
    sides: Sequence[Side], rounds: int, names: Sequence[str], model: str, dtype: str
) -> Figures:
    """Measures updates, the first one from the command on, and the peak memory of trainings."""
    name = f"{model} {dtype}"
    text = write_text(PLACE / "updates", 8000, (30, 30), 2000)
    options = write_options(name, {**text, **MODELS[model], "dtype": DTYPES[dtype]})
    with contextlib.ExitStack() as stack:
        trainings = {side: stack.enter_context(Training(side, options)) for side in sides}
        calls = {side: partial(training.seconds, 1) for side, training in trainings.items()}
        warm = sides
        if not names:  # fills the caches; base again has no first update then
            *warm, again = sides
            fills = {side: partial(_first_update, side, options) for side in warm}
            fills[again] = calls[again]
            each_checkout(lambda side: attempt(side, fills[side]), sides)
        first = in_turn({side: calls[side] for side in warm}, 1)
        in_turn(calls, 1)  # warm-up
        seconds = in_turn(calls, 2 * rounds - 1)
        peaks = {side.name: [trainings[side].peak()] for side in warm if side.name in seconds}
    measured = {"update": seconds, "first update": first, "peak memory": peaks}
    return {f"{name}: {what}": values for what, values in measured.items()}


def _first_update(side: Side, options: Path) -> float:
    with Training(side, options) as training:
        return training.seconds(1)


def each_checkout(function: Callable[[Side], object], sides: Sequence[Side]) -> None:
    """Calls a function with a side of each checkout, two at a time, without measuring it."""
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(function, {side.checkout: side for side in sides}.values()))


def translation(sides: Sequence[Side], rounds: int, _: Sequence[str]) -> Figures:
    """Measures `translate`: its start with one sentence, and sentences that come later."""
    models, lines = _trained(sides)
    with contextlib.ExitStack() as stack:
        calls = {
            side: stack.enter_context(Translation(side, models[side.checkout])).seconds
            for side in sides
        }
        first = in_turn({side: partial(call, lines[:1]) for side, call in calls.items()}, 1)
        started = [side for side in sides if side.name in first]
        many = {side: partial(calls[side], lines[:MANY]) for side in started}
        in_turn(many, 2)  # warm-up
        seconds = in_turn(many, 2 * rounds)
        return {"translate: start": first, f"translate: {MANY} sentences": seconds}


def saved_model(sides: Sequence[Side], rounds: int, names: Sequence[str]) -> Figures:
    """Measures the export of each checkout: one sentence alone, and a batch."""
    models, lines = _trained(sides)
    with tempfile.TemporaryDirectory(dir=PLACE) as exports:

        def export(side: Side) -> None:
            to = Path(exports, side.checkout.name)
            options = ("-m", models[side.checkout], "--to", to)
            attempt(side, partial(side.run, "-m", "nmt", "export", *options))

        each_checkout(export, sides)
        tasks = {
            f"SavedModel: {name}": ("saved model", {"exports": exports, "lines": lines[:count]})
            for name, count in (("one sentence", 1), ("a batch of 64", 64))
        }
        return in_workers(sides, tasks, 5 * rounds, names, TF_ENABLE_ONEDNN_OPTS="0")


def _trained(sides: Sequence[Side]) -> tuple[dict[Path, Path], list[str]]:
    """Returns each checkout's model and sentences; trains a Transformer if no earlier run has."""
    text = write_text(PLACE / "translation", 300, (12, 15), 8000)
    training = {"learning_rate": 0.003, "finish_after": TRAINED}
    path = write_options("translate", {**text, **transformer_options(128, 2), **training})
    name = f"translate {hashlib.sha256(path.read_bytes()).hexdigest()[:8]}"
    models = {side.checkout: side.cache / name for side in sides}

    def train(side: Side) -> None:
        folder = models[side.checkout]
        done = folder.with_suffix(".done")
        command = ("-m", "nmt", "train", "-m", folder, "--config", path)
        if not done.exists() and attempt(side, partial(side.run, *command)):
            done.touch()

    each_checkout(train, sides)
    return models, Path(text["source_dataset"]).read_text().splitlines()


def layer(sides: Sequence[Side], rounds: int, names: Sequence[str]) -> Figures:
    """Measures the import of the package, passes of a layer, and steps of `fit`."""
    tasks: dict[str, tuple[str, dict[str, Any]]] = {"import rmsnorm_tf": ("import", {})}
    for (shape, dtype), mode, passes in itertools.product(LAYERS, MODES, PASSES):
        given = {"shape": shape, "dtype": dtype, "mode": mode, "passes": passes}
        tasks[f"layer {shape} {dtype}: {mode}, {passes}"] = ("layer", given)
    tasks |= {
        f"fit, {units} units": ("fit", {"units": units, "mode": "default"}) for units in (64, 256)
    }
    return in_workers(sides, tasks, 2 * rounds + 1, names)


def in_workers(
    sides: Sequence[Side],
    tasks: Mapping[str, tuple[str, dict[str, Any]]],
    rounds: int,
    names: Sequence[str],
    **environment: str,
) -> Figures:
    """Returns the seconds of tasks, or of those with these names, in a process of each side.

    A task has a kind, as in compare_worker.py, and its arguments.
    """
    with contextlib.ExitStack() as stack:
        workers = {side: stack.enter_context(TaskWorker(side, **environment)) for side in sides}
        found = {}
        for name, task in tasks.items():
            if not names or name in names:
                calls = {side: partial(worker.seconds, *task) for side, worker in workers.items()}
                found[name] = in_turn(calls, 1)
                if task[0] != "import":  # else the first call prepares
                    found[name] = in_turn(calls, rounds)
        return found
