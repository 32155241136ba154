"""The network: DRAW, whose loss is a bound on the negative log-likelihood of an image."""

from typing import Any

import keras
from keras import ops

from ..runs.run import Condition

UNITS = 128  # of the two LSTMs; the paper has 256
LATENT = 10  # of what a step draws
STEPS = 8  # the paper has 64
CLIP = 5.0  # of the global norm of the gradient


class CellNormLSTMCell(keras.layers.LSTMCell):
    """Computes an LSTM whose output is `h = o * tanh(N(c))`.

    The cell state c itself is not normalized.

    Args:
        units: Size of the state.
        norm: The normalization N; `None` for none.
        **kwargs: As in `keras.layers.LSTMCell`, without dropout.

    Reference:
        Ba et al. 2016, arXiv 1607.06450, section 6.4.
    """

    def __init__(self, units: int, norm: keras.layers.Layer | None = None, **kwargs: Any):
        super().__init__(units, **kwargs)
        self.norm = norm

    def build(self, input_shape):
        super().build(input_shape)
        if self.norm:
            self.norm.build((None, self.units))

    def call(self, inputs, states, training=False):
        h, c = states
        sums = ops.matmul(inputs, self.kernel) + ops.matmul(h, self.recurrent_kernel) + self.bias
        i, f, proposal, o = ops.split(sums, 4, axis=-1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(proposal)
        h = ops.sigmoid(o) * ops.tanh(self.norm(c) if self.norm else c)
        return h, [h, c]


class DrawCell(keras.layers.Layer):
    """Makes a step of DRAW without attention.

    It reads the image and what is wrong with the drawing, and adds to the drawing.

        h_enc = LSTM([x, x - sigmoid(canvas), h_dec], h_enc)
        z     = mean + exp(log_deviation) * noise,    [mean, log_deviation] = h_enc W + b
        h_dec = LSTM(z, h_dec)
        canvas' = canvas + h_dec V + d

    The inputs are `[batch, pixels + latent]`: the image and the noise of this step. The states are
    h and c of the encoder and of the decoder, the canvas `[batch, pixels]`, and the sum of the
    divergences `[batch, 1]`, in nats, of z from a standard normal distribution.

    Args:
        encoder: The cell that reads.
        decoder: The cell that draws.
        pixels: Size of the image.
        latent: Size of z.
        **kwargs: Arguments of every Keras layer.

    Reference:
        Gregor et al. 2015, arXiv 1502.04623, equations 3 to 8 and 11.
    """

    def __init__(
        self,
        encoder: keras.layers.Layer,
        decoder: keras.layers.Layer,
        pixels: int,
        latent: int,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.decoder = decoder
        self.pixels = pixels
        self.latent = latent
        self.distribution = keras.layers.Dense(2 * latent, name="distribution")
        self.write = keras.layers.Dense(pixels, name="write")
        self.state_size = [*[encoder.units] * 2, *[decoder.units] * 2, pixels, 1]
        self.output_size = pixels + 1

    def build(self, input_shape):
        self.encoder.build((None, 2 * self.pixels + self.decoder.units))
        self.distribution.build((None, self.encoder.units))
        self.decoder.build((None, self.latent))
        self.write.build((None, self.decoder.units))

    def call(self, inputs, states, training=False):
        image, noise = ops.split(inputs, [self.pixels], axis=-1)
        h_encoder, c_encoder, h_decoder, c_decoder, canvas, divergence = states
        read = ops.concatenate([image, image - ops.sigmoid(canvas), h_decoder], -1)
        h_encoder, [_, c_encoder] = self.encoder(read, [h_encoder, c_encoder])
        mean, log_deviation = ops.split(self.distribution(h_encoder), 2, axis=-1)
        divergence = divergence + normal_divergence(mean, log_deviation)
        z = mean + ops.exp(log_deviation) * noise  # [batch, latent]
        h_decoder, [_, c_decoder] = self.decoder(z, [h_decoder, c_decoder])
        canvas = canvas + self.write(h_decoder)
        states = [h_encoder, c_encoder, h_decoder, c_decoder, canvas, divergence]
        return ops.concatenate([canvas, divergence], -1), states


def normal_divergence(mean, log_deviation):
    """Returns KL(N(mean, deviation^2) || N(0, 1)) in nats, `[batch, 1]`.

    It is summed over the last axis.
    """
    terms = ops.square(mean) + ops.exp(2 * log_deviation) - 1
    return ops.sum(terms / 2 - log_deviation, -1, keepdims=True)


class WithNoise(keras.layers.Layer):
    """Repeats images `[batch, pixels]` for each step and appends new noise.

    Returns `[batch, steps, pixels + latent]`.

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
        self.generator = keras.random.SeedGenerator(seed)

    def call(self, images):
        noise = keras.random.normal(
            (ops.shape(images)[0], self.steps, self.latent), seed=self.generator
        )
        return ops.concatenate([ops.repeat(images[:, None], self.steps, axis=1), noise], -1)


def build_model(
    condition: Condition,
    step_size: float,
    seed: int,
    pixels: int,
    units: int = UNITS,
    latent: int = LATENT,
    steps: int = STEPS,
) -> keras.Model:
    """Returns the compiled network of a condition.

    It maps images to the logits of their drawings and the divergence. The output is `[batch, pixels
    + 1]`. The seed alone determines initial weights and noise.

    Args:
        condition: Builds the norm of each cell state.
        pixels: Size of an image.
    """
    keras.utils.set_random_seed(seed)
    cells = [
        CellNormLSTMCell(units, condition.norm and condition.norm(f"{name}_norm"), name=name)
        for name in ("encoder", "decoder")
    ]
    images = keras.Input((pixels,))
    inputs = WithNoise(steps, latent, seed, name="noise")(images)
    drawing = keras.layers.RNN(DrawCell(*cells, pixels, latent, name="step"), name="drawing")(
        inputs
    )
    model = keras.Model(images, drawing)
    model.compile(
        optimizer=keras.optimizers.Adam(step_size, global_clipnorm=CLIP),
        loss=bound,
        jit_compile=True,
    )
    return model


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
