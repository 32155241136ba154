"""The network: two hidden layers of 1,000 units, with a norm between each product and its ReLU."""

import keras

from ..runs.networks import compile_classifier
from ..runs.run import Condition

HIDDEN = 1000
CLASSES = 10
SUMS = ("hidden_1", "hidden_2")  # layers whose outputs are normalized


def build_model(
    condition: Condition, step_size: float, seed: int, pixels: int, hidden: int = HIDDEN
) -> keras.Model:
    """Returns the compiled network of a condition.

    The norm has an offset, so the product before it has no bias. The seed alone determines the
    weights.

    Args: condition: Builds the norm. Its option `normalize_logits` puts one after the last product
        too. pixels: Size of an image. hidden: Units of each hidden layer.
    """
    keras.utils.set_random_seed(seed)
    x = images = keras.Input((pixels,))
    for name in SUMS:
        x = keras.layers.Dense(hidden, use_bias=condition.norm is None, name=name)(x)
        if condition.norm:
            x = condition.norm(f"{name}_norm")(x)
        x = keras.layers.ReLU()(x)
    logits = keras.layers.Dense(CLASSES, name="logits")(x)
    if condition.options.get("normalize_logits"):
        logits = condition.norm("logits_norm")(logits)
    return compile_classifier(keras.Model(images, logits), keras.optimizers.Adam(step_size))
