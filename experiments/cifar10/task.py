"""ConvPool-CNN-C on CIFAR-10 with every kind of normalization: the task `cifar10`."""

import keras

from ..runs.experiment import Experiment
from ..runs.learning import Column, Curve, Learning, best, last, last_loss
from ..runs.networks import ImageClassifiers
from ..runs.probes import mean_share
from ..runs.run import Run, Setting
from .data import read_cifar10
from .model import CONDITIONS, SPACE, SUMS, build_model

_TEXT = (
    "ConvPool-CNN-C with fewer channels than the paper's, trained by Adam on ZCA-whitened images "
    "with noise and dropout. The learning rate is constant for the first half of the training, "
    "and then falls to 0. As in the paper's code, LayerNorm and RMSNorm normalize each channel "
    "over height and width (instance normalization); pRMSNorm takes the first 12.5% of the "
    "positions, row by row. BatchNorm and WeightNorm normalize the logits too; the others cannot, "
    "because the logits have one position. The last three rows normalize over other axes. The "
    "test error is that of the checkpoint with the best validation loss. Values are means over "
    "the seeds, with their standard deviation (sd). Published errors are those of the full model "
    "and data after 200 epochs; only their order compares. The errors here are of the first six "
    "epochs and far from these, so no claim is judged."
)

_PROBED = 200  # validation images whose activations are measured


class Classifiers(ImageClassifiers):
    validated = 500

    def build(self, run: Run) -> keras.Model:
        pixels = self.data.train.images.shape[1]
        return build_model(
            run.condition, run.step_size, run.seed, run.setting.updates, pixels, *self.sizes
        )

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        return mean_share(model, SUMS, self.data.valid.images[:_PROBED], SPACE)


EXPERIMENT = Experiment(
    name="cifar10",
    title="CIFAR-10",
    conditions=CONDITIONS,
    minutes=1.1,
    settings=(
        Setting(
            "batch-100", "batches of 100", batch_size=100, updates=540, window=30, validate_every=90
        ),
    ),
    metric="nll",
    metric_label="validation loss in nats",
    learning=Learning(
        title="Loss and error (Zhang & Sennrich 2019, section 6.4)",
        text=_TEXT,
        columns=(
            Column("last training loss", last_loss, 3),
            Column("best validation loss", best("nll", "nll"), 3),
            Column("test error, best", best("test_error", "nll"), 2, "%"),
            Column("test error, last", last("test_error"), 2, "%"),
        ),
        curves=(
            Curve("train", "loss", "training loss, nats", scale="linear"),
            Curve("validations", "test_error", "test error, %", scale="linear"),
        ),
        comparisons=(),
        published={
            "none": "8.96 %",
            "batchnorm": "8.25 %",
            "weightnorm": "8.28 %",
            "layernorm": "10.49 %",
            "rmsnorm": "8.83 %",
            "prmsnorm": "10.37 %",
        },
    ),
    load=lambda data: Classifiers(read_cifar10(data)),
    share_over="the positions of a channel, in the rows with other axes too",
    published_times={
        "none": 21,
        "batchnorm": 38,
        "weightnorm": 23,
        "layernorm": 39,
        "rmsnorm": 31,
        "prmsnorm": 30,
    },  # s
)
reproduce = EXPERIMENT.reproduce
