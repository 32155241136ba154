"""The cells of DRAW: an LSTM that normalizes its cell state alone, and a step of drawing."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="experiments.draw")
class CellNormLSTMCell(keras.layers.LSTMCell):
    """An LSTM whose output is `h = o * tanh(N(c))`. The cell state c itself is not normalized.

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
        if self.norm and not self.norm.built:  # in a loaded model it is
            self.norm.build((None, self.units))

    def call(self, inputs, states, training=False):
        h, c = states
        sums = ops.matmul(inputs, self.kernel) + ops.matmul(h, self.recurrent_kernel) + self.bias
        i, f, proposal, o = ops.split(sums, 4, axis=-1)
        c = ops.sigmoid(f) * c + ops.sigmoid(i) * ops.tanh(proposal)
        h = ops.sigmoid(o) * ops.tanh(self.norm(c) if self.norm else c)
        return h, [h, c]

    def get_config(self):
        return {**super().get_config(), "norm": keras.saving.serialize_keras_object(self.norm)}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "norm": keras.saving.deserialize_keras_object(config["norm"])})


@keras.saving.register_keras_serializable(package="experiments.draw")
class DrawCell(keras.layers.Layer):
    """A step of DRAW without attention: it reads the image and what is wrong with the drawing, and
    adds to the drawing.

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
        sizes = {
            self.encoder: 2 * self.pixels + self.decoder.units,
            self.distribution: self.encoder.units,
            self.decoder: self.latent,
            self.write: self.decoder.units,
        }
        for part, size in sizes.items():
            if not part.built:  # in a loaded model they are
                part.build((None, size))

    def call(self, inputs, states, training=False):
        image, noise = ops.split(inputs, [self.pixels], axis=-1)
        h_encoder, c_encoder, h_decoder, c_decoder, canvas, divergence = states
        read = ops.concatenate([image, image - ops.sigmoid(canvas), h_decoder], -1)
        h_encoder, [_, c_encoder] = self.encoder(read, [h_encoder, c_encoder])
        mean, log_deviation = ops.split(self.distribution(h_encoder), 2, axis=-1)
        divergence = divergence + normal_divergence(mean, log_deviation)
        drawn = self.draw(mean + ops.exp(log_deviation) * noise, [h_decoder, c_decoder, canvas])
        canvas = drawn[-1]
        return ops.concatenate([canvas, divergence], -1), [h_encoder, c_encoder, *drawn, divergence]

    def draw(self, z, states):
        """Returns h and c of the decoder and the canvas after drawing z `[batch, latent]`, given
        those before."""
        h_decoder, c_decoder, canvas = states
        h_decoder, [_, c_decoder] = self.decoder(z, [h_decoder, c_decoder])
        return [h_decoder, c_decoder, canvas + self.write(h_decoder)]

    def get_config(self):
        cells = {
            name: keras.saving.serialize_keras_object(getattr(self, name))
            for name in ("encoder", "decoder")
        }
        return {**super().get_config(), **cells, "pixels": self.pixels, "latent": self.latent}

    @classmethod
    def from_config(cls, config):
        cells = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in ("encoder", "decoder")
        }
        return cls(**{**config, **cells})


def normal_divergence(mean, log_deviation):
    """Returns KL(N(mean, deviation^2) || N(0, 1)) in nats, summed over the last axis, `[batch,
    1]`."""
    terms = ops.square(mean) + ops.exp(2 * log_deviation) - 1
    return ops.sum(terms / 2 - log_deviation, -1, keepdims=True)
