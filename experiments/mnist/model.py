"""The network: two hidden layers of 1,000 units, with a norm between each product and its ReLU."""

import keras

from ..trials.networks import compile_classifier
from ..trials.trial import TrialRow

HIDDEN = 1000
CLASSES = 10
SUMS = ("hidden_1", "hidden_2")  # layers whose outputs are normalized


def build_model(
    row: TrialRow, step_size: float, seed: int, pixels: int, hidden: int = HIDDEN
) -> keras.Model:
    """Returns the compiled network of a row.

    The norm has an offset, so the product before it has no bias. The seed alone determines the
    weights.

    Args:
        row: Builds the norm. Its option `normalize_logits` puts one after the last product too.
        pixels: Size of an image.
        hidden: Units of each hidden layer.
    """
    keras.utils.set_random_seed(seed)
    x = images = keras.Input((pixels,))
    for name in SUMS:
        x = keras.layers.Dense(hidden, use_bias=row.norm is None, name=name)(x)
        if row.norm:
            x = row.norm(f"{name}_norm")(x)
        x = keras.layers.ReLU()(x)
    logits = keras.layers.Dense(CLASSES, name="logits")(x)
    if row.options.get("normalize_logits"):
        logits = row.norm("logits_norm")(logits)
    return compile_classifier(keras.Model(images, logits), keras.optimizers.Adam(step_size))
