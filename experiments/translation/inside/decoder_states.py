"""Measures the decoder's hidden-to-hidden activations by position; runs in the patched copy of the baseline.

    python -m experiments.translation.inside.decoder_states --model DIR --source FILE --target FILE --to FILE.json

The decoder gets the reference words before each position. The hidden-to-hidden activations of a GRU are the normalized
products of its state, before the products of its input are added: `[N(h U_g), N(h U_p)]` `[batch, 3 * units]`, with N
the normalization.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from nmt.model.gru import GRUStep
from nmt.system import System, load_system
from nmt.text.datasets import ValidationData
from nmt.text.parallel_text import ParallelText

from .command import measure_model

POSITIONS = 4  # shown one by one; the rest only in the average over all
BATCH_SIZE = 80


@contextlib.contextmanager
def recorded(gru: GRUStep) -> Iterator[dict[str, tf.Tensor]]:
    """Yields a dictionary that the next step fills with the hidden-to-hidden activations."""
    activations: dict[str, tf.Tensor] = {}
    norms = {name: getattr(gru, name) for name in ("gates_state_norm", "proposal_state_norm")}

    def recording(name: str) -> Callable[[tf.Tensor], tf.Tensor]:
        return lambda x: activations.setdefault(name, norms[name](x))

    for name in norms:
        setattr(gru, name, recording(name))
    try:
        yield activations
    finally:
        for name, norm in norms.items():
            setattr(gru, name, norm)


def measure_states(system: System, text: ParallelText) -> dict[str, Any]:
    """Returns mean and standard deviation over the units, averaged over the sentences that have a position.

    Args:
        system: The trained model.
        text: The sentence pairs. The end of a target is a position, padding is not.

    Returns:
        `positions`, the last of which is `all`; `tokens`, `mean` and `std` at each position for the decoder's first
        GRU, which gets the state of the position before; and `second`, the mean and std for its second GRU, after the
        attention.
    """
    model = system.model

    @tf.function(reduce_retracing=True)
    def step(words, state, memory):
        with recorded(model.decoder.word_gru) as first, recorded(model.decoder.context_gru) as second:
            _, state, memory = model.make_step()(words, state, memory)
        return state, tf.stack([_statistics(first), _statistics(second)], 1)  # [batch, 2 GRUs, 2]

    data = ValidationData(text, system.source_vocabulary, system.target_vocabulary, batch_size=BATCH_SIZE)
    found: list[list[np.ndarray]] = []  # by position
    for batch in data.batches:
        state, memory = model.encode(batch.source, batch.source_mask)
        words = tf.fill([len(batch.target)], model.first_word)
        found += [[] for _ in range(len(found), batch.target.shape[1])]
        for at, (target, mask) in enumerate(zip(*map(tf.transpose, (batch.target, batch.target_mask)), strict=True)):
            state, statistics = step(words, state, memory)
            found[at].append(statistics.numpy()[mask.numpy() > 0])
            words = target
    return _summary([np.concatenate(each) for each in found])


def _statistics(activations: dict[str, tf.Tensor]) -> tf.Tensor:
    """Returns mean and standard deviation over the units, `[batch, 2]`."""
    units = tf.concat(list(activations.values()), -1)  # [batch, 3 * units]
    return tf.stack([tf.reduce_mean(units, -1), tf.math.reduce_std(units, -1)], -1)


def _summary(found: list[np.ndarray]) -> dict[str, Any]:
    """Returns the averages over `[tokens, 2 GRUs, 2]` of each position."""
    chosen = {str(at + 1): each for at, each in enumerate(found[:POSITIONS])}
    chosen["all"] = np.concatenate(found)
    averages = np.stack([each.mean(0, dtype=np.float64) for each in chosen.values()], -1)  # [2 GRUs, 2, positions]
    first, second = ({"mean": mean.tolist(), "std": std.tolist()} for mean, std in averages)
    return {"positions": list(chosen), "tokens": [len(each) for each in chosen.values()], **first, "second": second}


def main() -> None:
    measure_model(__doc__.splitlines()[0], lambda model, text: measure_states(load_system(model), text))


if __name__ == "__main__":
    main()
