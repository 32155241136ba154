"""Trains the network of a run, and continues an interrupted training."""

import json
import time
from pathlib import Path
from typing import Any

import keras
import numpy as np

from nmt.storage.files import atomic_write

from .networks import Networks, in_batches
from .run import Run


def train(run: Run, networks: Networks, folder: Path) -> dict[str, Any]:
    """Trains the network of a run in windows of updates, validates it, and returns its log.

    An interrupted training continues from its last validation and ends as an uninterrupted one.

    Args:
        run: The run.
        networks: The networks of its task.
        folder: Holds the checkpoint of an interrupted training.

    Returns:
        `train`, the `update` and the mean `loss` of each window; `validations`, with `update` and
        the values of `Networks.validate`; `seconds` of the updates; `mean_share`, the shares of the
        mean at `first` and at `last`; and the values of `Networks.results`.
    """
    keras.backend.clear_session()
    shares = {"first": networks.mean_shares(networks.build(run))}
    setting = run.setting
    folder.mkdir(parents=True, exist_ok=True)
    model, done = _restore(folder) or (
        networks.build(run),
        {"train": [], "validations": [], "seconds": 0.0},
    )
    start = done["train"][-1]["update"] if done["train"] else 0
    for update in range(start, setting.updates, setting.window):
        count = min(setting.window, setting.updates - update)
        numbers = order(
            run.seed, update * setting.batch_size, count * setting.batch_size, networks.examples
        )
        inputs, targets = networks.batch(numbers, setting)
        begin = time.perf_counter()
        history = model.fit(
            in_batches(inputs, targets, batch_size=setting.batch_size), shuffle=False, verbose=0
        )
        done["seconds"] += time.perf_counter() - begin
        done["train"].append({"update": update + count, "loss": history.history["loss"][0]})
        if (update + count) % setting.validate_every == 0 or update + count == setting.updates:
            done["validations"].append({"update": update + count, **networks.validate(model)})
            _save(model, done, folder)
    shares["last"] = networks.mean_shares(model)
    return {**done, "mean_share": shares, **networks.results()}


def order(seed: int, start: int, count: int, size: int) -> np.ndarray:
    """Returns the indices of `count` examples from number `start` on. Every epoch has its own
    permutation.

    >>> sorted(order(1, 0, 4, 4).tolist())
    [0, 1, 2, 3]
    >>> order(1, 6, 2, 4).tolist() == order(1, 4, 4, 4).tolist()[2:]
    True
    """
    epochs = range(start // size, (start + count - 1) // size + 1)
    shuffled = np.concatenate(
        [np.random.default_rng([seed, epoch]).permutation(size) for epoch in epochs]
    )
    return shuffled[start - epochs.start * size :][:count]


def _save(model: keras.Model, done: dict[str, Any], folder: Path) -> None:
    """Saves a checkpoint and removes older ones.

    The JSON file is written last and makes the checkpoint valid.
    """
    name = f"{done['train'][-1]['update']:09d}"
    model.save(folder / f"{name}.keras")
    with atomic_write(folder / f"{name}.json") as file:
        json.dump(
            {"done": done, "seeds": [variable.numpy().tolist() for variable in _seeds(model)]}, file
        )
    for path in folder.iterdir():
        if path.stem < name:
            path.unlink()


def _restore(folder: Path) -> tuple[keras.Model, dict[str, Any]] | None:
    """Returns the model and the progress of the last checkpoint, or `None` without any."""
    saved = sorted(folder.glob("*.json"))
    if not saved:
        return None
    found = json.loads(saved[-1].read_text(encoding="utf-8"))
    model = keras.saving.load_model(saved[-1].with_suffix(".keras"))
    for variable, value in zip(_seeds(model), found["seeds"], strict=True):
        variable.assign(value)
    return model, found["done"]


def _seeds(model: keras.Model) -> list[keras.Variable]:
    """Returns the states of the random generators, as of dropout, which a .keras file does not
    hold."""
    weights = {id(weight) for weight in model.weights}
    return [variable for variable in model.variables if id(variable) not in weights]
