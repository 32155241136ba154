"""Permutation-invariant MNIST with every kind of normalization: the task `mnist`."""

import keras

from ..data_sets.arrays import read_mnist
from ..reporting.judging import Hypothesis
from ..runs.experiment import Experiment
from ..runs.learning import (
    FASTER,
    Column,
    Comparison,
    Curve,
    Learning,
    best,
    last,
    last_loss,
    mean_loss,
)
from ..runs.networks import ImageClassifiers
from ..runs.probes import mean_share
from ..runs.run import Run, Setting
from .model import CONDITIONS, SUMS, build_model

_TEXT = (
    "A network of 784, 1,000, 1,000 and 10 units with ReLU, trained by Adam; 55,000 images are "
    "for training, 5,000 for validation. The norm stands before each ReLU; BatchNorm normalizes "
    "the logits too, as in the paper, with the unbiased variance. The training loss is the mean "
    "negative log-likelihood of the batches of a window of updates, in nats. Its mean over the "
    "whole training tells how fast it falls. It also depends on the learning rate, which the "
    "validation loss chose for each row. The test error is that of the checkpoint with the best "
    "validation loss. Values are means over the seeds, with the standard deviation (sd). The "
    "paper shows curves and prints no numbers."
)
_CURVE = "Ba et al., section 6.6: curves without numbers"
_OTHERS = "Zhang & Sennrich: other tasks"


class Classifiers(ImageClassifiers):
    validated = 1000

    def build(self, run: Run) -> keras.Model:
        pixels = self.data.train.images.shape[-1]
        return build_model(run.condition, run.step_size, run.seed, pixels, *self.sizes)

    def mean_shares(self, model: keras.Model) -> dict[str, float]:
        return mean_share(model, SUMS, self.data.valid.images)


EXPERIMENT = Experiment(
    name="mnist",
    title="Permutation-invariant MNIST",
    conditions=CONDITIONS,
    minutes=0.8,
    settings=(
        Setting(
            "batch-128",
            "batches of 128",
            batch_size=128,
            updates=4300,
            window=86,
            validate_every=430,
        ),
        Setting(
            "batch-4", "batches of 4", batch_size=4, updates=6000, window=200, validate_every=1000
        ),
    ),
    metric="nll",
    metric_label="validation loss in nats",
    learning=Learning(
        title="Loss and error (Ba et al. 2016, section 6.6)",
        text=_TEXT,
        columns=(
            Column("mean training loss", mean_loss, 4),
            Column("last training loss", last_loss, 4),
            Column("best validation loss", best("nll", "nll"), 4),
            Column("test error, best", best("test_error", "nll"), 2, "%"),
            Column("test error, last", last("test_error"), 2, "%"),
        ),
        curves=(
            Curve("train", "loss", "training loss, nats"),
            Curve("validations", "test_error", "test error, %"),
        ),
        comparisons=[
            Comparison(
                "mean training loss",
                mean_loss,
                unit="%",
                hypotheses=[
                    # With batches of 128, the learning rate that the validation loss chose decides
                    # the order.
                    Hypothesis(one, other, outcome, claim, paper, setting="batch-4")
                    for one, other, outcome, claim, paper in (
                        ("layernorm", "none", "lower", f"LayerNorm {FASTER}", _CURVE),
                        (
                            "layernorm",
                            "batchnorm",
                            "lower",
                            "LayerNorm learns faster than BatchNorm",
                            _CURVE,
                        ),
                        (
                            "batchnorm",
                            "none",
                            "higher",
                            "BatchNorm fails with batches of 4",
                            _CURVE,
                        ),
                        ("rmsnorm", "none", "lower", f"RMSNorm {FASTER}", _OTHERS),
                        (
                            "rmsnorm",
                            "layernorm",
                            "equal",
                            "RMSNorm learns as fast as LayerNorm",
                            _OTHERS,
                        ),
                    )
                ],
            )
        ],
    ),
    load=lambda data: Classifiers(read_mnist(data)),
    share_over="the units of a hidden layer",
)
reproduce = EXPERIMENT.reproduce
