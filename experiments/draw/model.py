"""The network: DRAW, whose loss is a bound on the negative log-likelihood of an image."""

from typing import NamedTuple

import keras
from keras import ops

from ..runs.run import Condition
from .cells import CellNormLSTMCell, DrawCell

CLIP = 5.0  # of the global norm of the gradient


@keras.saving.register_keras_serializable(package="experiments.draw")
class WithNoise(keras.layers.Layer):
    """Repeats images `[batch, pixels]` for each step and appends new noise: `[batch, steps, pixels
    + latent]`.

    Args:
        steps: Number of steps.
        latent: Size of the noise of a step.
        seed: Seed of the noise.
        **kwargs: Arguments of every Keras layer.
    """

    def __init__(self, steps: int, latent: int, seed: int, **kwargs):
        super().__init__(**kwargs)
        self.steps = steps
        self.latent = latent
        self.seed = seed
        self.generator = keras.random.SeedGenerator(seed)

    def call(self, images):
        noise = keras.random.normal(
            (ops.shape(images)[0], self.steps, self.latent), seed=self.generator
        )
        return ops.concatenate([ops.repeat(images[:, None], self.steps, axis=1), noise], -1)


class Sizes(NamedTuple):
    """Sizes of a network."""

    units: int = 128  # of the two LSTMs; the paper has 256
    latent: int = 10  # of what a step draws
    steps: int = 8  # the paper has 64


SIZES = Sizes()


def build_model(
    condition: Condition, step_size: float, seed: int, pixels: int, sizes: Sizes = SIZES
) -> keras.Model:
    """Returns the compiled network of a condition. It maps images to the logits of their drawings
    and the divergence.

    The output is `[batch, pixels + 1]`. The seed alone determines initial weights and noise.

    Args:
        condition: Builds the norm of each cell state.
        pixels: Size of an image.
    """
    keras.utils.set_random_seed(seed)
    cells = [
        CellNormLSTMCell(sizes.units, condition.norm and condition.norm(f"{name}_norm"), name=name)
        for name in ("encoder", "decoder")
    ]
    images = keras.Input((pixels,))
    inputs = WithNoise(sizes.steps, sizes.latent, seed, name="noise")(images)
    drawing = keras.layers.RNN(DrawCell(*cells, pixels, sizes.latent, name="step"), name="drawing")(
        inputs
    )
    model = keras.Model(images, drawing)
    model.compile(
        optimizer=keras.optimizers.Adam(step_size, global_clipnorm=CLIP),
        loss=bound,
        jit_compile=True,
    )
    return model


@keras.saving.register_keras_serializable(package="experiments.draw")
def bound(images, outputs):
    """Returns the bound on the negative log-likelihood of each image, in nats, `[batch]`.

    It is the cross entropy of the pixels plus the divergence of what was drawn.

    Args:
        images: `[batch, pixels]` of 0 and 1.
        outputs: `[batch, pixels + 1]`, the logits of the pixels and the divergence.

    Reference: Gregor et al. 2015, arXiv 1502.04623, equations 9 to 12.
    """
    logits = outputs[:, :-1]
    divergence = outputs[:, -1]
    cross_entropy = ops.maximum(logits, 0) - logits * images + ops.log1p(ops.exp(-ops.abs(logits)))
    return ops.sum(cross_entropy, -1) + divergence
