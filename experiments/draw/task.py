"""DRAW on binarized MNIST with every kind of normalization: the task `draw`."""

import keras
import numpy as np

from ..data_sets.arrays import Parts, read_mnist
from ..runs.experiment import Experiment
from ..runs.kinds import norm_conditions
from ..runs.learning import Column, Comparison, Curve, Learning, faster, last, last_loss, mean_of
from ..runs.networks import Networks, in_batches
from ..runs.probes import share_of_mean
from ..runs.run import Run, Setting
from .model import build_model

_TEXT = (
    "DRAW without attention: two LSTMs read and draw an image in steps. The norm stands inside "
    "both, on the cell state alone: h = o * tanh(N(c)). The data are MNIST, binarized once at "
    "random with a fixed seed, so the values do not compare with those of the usual binarized "
    "MNIST. The bound is the cross entropy of the pixels plus the divergence of all steps, in "
    "nats; lower is better. Its mean over the whole training tells how fast it falls. Here, LSTMs "
    "have 128 units and draw in 8 steps; in the paper they have 256 units and draw in 64. Values "
    "are means over the seeds, with the standard deviation (sd)."
)

TRAINING = 50_000
_BINARIZATION = 0  # seed of the pixels
_MEASURED = 2000  # images of a validation
_PROBED = 200  # validation images whose cell states are measured


class Drawers(Networks):
    def build(self, run: Run) -> keras.Model:
        return build_model(
            run.condition, run.step_size, run.seed, self.data.train.shape[1], *self.sizes
        )

    def batch(self, numbers: np.ndarray, setting: Setting) -> tuple[np.ndarray, np.ndarray]:
        chosen = self.data.train[numbers]
        return chosen, chosen

    def measure(self, model: keras.Model, part: np.ndarray) -> dict[str, float]:
        images = part[:_MEASURED]
        return {"bound": model.evaluate(in_batches(images, images, batch_size=500), verbose=0)}

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        """Returns the shares in the cell states of both LSTMs, over all steps."""
        images = self.data.valid[:_PROBED]
        step = model.get_layer("drawing").cell
        inputs = model.get_layer("noise")(images)
        states = [keras.ops.zeros((len(images), size)) for size in step.state_size]
        found: dict[str, list[np.ndarray]] = {"encoder": [], "decoder": []}
        for number in range(inputs.shape[1]):
            _, states = step(inputs[:, number], states)
            for name, c in (("encoder", states[1]), ("decoder", states[3])):
                found[name].append(keras.ops.convert_to_numpy(c))
        return {name: share_of_mean(np.concatenate(each)) for name, each in found.items()}


def binarize(data: str, training: int = TRAINING) -> Parts:
    """Reads MNIST and draws each pixel once, 1 with its brightness as probability.

    The same pixels come every time. A part has its images as `[images, pixels]`, float32.

    Args:
        data: As for `read_mnist`.
        training: Number of images to train on; the others of the training set are for validation.
    """
    generator = np.random.default_rng(_BINARIZATION)
    parts = [part.images for part in read_mnist(data, training)]
    return Parts(*((generator.random(part.shape) < part).astype(np.float32) for part in parts))


EXPERIMENT = Experiment(
    name="draw",
    title="DRAW on binarized MNIST",
    conditions=norm_conditions(epsilon=1e-5),
    minutes=1.7,
    settings=(
        Setting(
            "batch-128", "batches of 128", batch_size=128, updates=780, window=39, validate_every=78
        ),
    ),
    metric="bound",
    metric_label="validation bound in nats",
    learning=Learning(
        title="The bound (Ba et al. 2016, section 6.4)",
        text=_TEXT,
        columns=(
            Column("mean validation bound", mean_of("bound"), 2),
            Column("last training loss", last_loss, 2),
            Column("last validation bound", last("bound"), 2),
            Column("last test bound", last("test_bound"), 2),
        ),
        curves=(
            Curve("train", "loss", "training bound, nats", scale="linear"),
            Curve("validations", "bound", "validation bound, nats", scale="linear"),
        ),
        comparisons=[
            Comparison(
                "mean validation bound",
                mean_of("bound"),
                unit="%",
                hypotheses=faster("Ba et al., section 6.4: a curve, almost twice as fast"),
            )
        ],
        published={"none": "82.36", "layernorm": "82.09"},
    ),
    load=lambda data: Drawers(binarize(data)),
    share_over="the units of a cell state",
)
reproduce = EXPERIMENT.reproduce
