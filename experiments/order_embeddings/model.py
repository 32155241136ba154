"""The network: images and captions in one space, in which a caption is above its image."""

import keras

from rmsnorm_tf import RMSNormGRU

from ..runs.kinds import cell_options
from ..runs.run import Condition
from .data import LONGEST, WORDS

UNITS = 128  # the papers have 1024
WORD_UNITS = 128  # the papers have 300
MARGIN = 0.05
CLIP = 2.0  # of the gradient of each weight


def build_model(
    condition: Condition,
    step_size: float,
    seed: int,
    features: int,
    units: int = UNITS,
    word_units: int = WORD_UNITS,
) -> keras.Model:
    """Returns the compiled network of a condition.

    It maps images and captions to `[batch, 2, units]`. An image goes through one matrix; the
    embedding of a caption is the last state of a GRU. Both are scaled to length 1 and become
    absolute values. The seed alone determines the initial weights.

    Args:
        condition: Its options are arguments of the GRU.
        features: Size of an image.
        units: Size of the embeddings.
        word_units: Size of the word embeddings.

    Reference: Vendrov et al. (2016), arXiv:1511.06361.
    """
    keras.utils.set_random_seed(seed)
    images = keras.Input((features,), name="images")
    captions = keras.Input((LONGEST,), dtype="int32", name="captions")
    image = keras.layers.Dense(units, name="image")(images)
    words = keras.layers.Embedding(WORDS, word_units, mask_zero=True, name="words")(captions)
    caption = RMSNormGRU(units, name="gru", **cell_options(condition))(words)
    sides = [keras.layers.Reshape((1, units))(side) for side in (image, caption)]
    joined = keras.layers.Concatenate(axis=1)(sides)  # [batch, 2, units]
    length = keras.layers.UnitNormalization(name="length")(joined)
    model = keras.Model([images, captions], keras.ops.abs(length))
    model.compile(
        optimizer=keras.optimizers.Adam(step_size, clipnorm=CLIP), loss=order_loss, jit_compile=True
    )
    return model


def order_penalties(images, captions):
    """Returns how far each caption is from being above each image, `[images, captions]`.

        E(caption, image) = || max(0, caption - image) ||^2

    Args:
        images: `[images, units]`.
        captions: `[captions, units]`.
    """
    excess = keras.ops.maximum(captions[None] - images[:, None], 0)  # [images, captions, units]
    return keras.ops.sum(keras.ops.square(excess), -1)


def order_loss(_, embeddings):
    """Returns the sum of the hinge losses of a batch.

    Each pair is compared with all other captions and all other images.

    Args:
        _: Not used.
        embeddings: `[batch, 2, units]`, of images and their captions.
    """
    penalties = order_penalties(embeddings[:, 0], embeddings[:, 1])
    own = keras.ops.diagonal(penalties)
    hinges = [keras.ops.maximum(MARGIN + each - penalties, 0) for each in (own[:, None], own[None])]
    others = 1 - keras.ops.eye(keras.ops.shape(own)[0])
    return keras.ops.sum(sum(hinges) * others)
