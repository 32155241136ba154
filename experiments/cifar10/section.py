"""What the CIFAR-10 report says of learning."""

from ..trials.learning import Column, Comparison, Curve, Expectation, Learning, best, last, last_loss

_TEXT = (
    "ConvPool-CNN-C with fewer channels than the paper's, trained by Adam on ZCA-whitened images with noise and "
    "dropout. The step size is constant for the first half of the training, and then falls to 0. As in the paper's "
    "code, LayerNorm and RMSNorm normalize each channel over height and width (instance normalization); pRMSNorm takes "
    "the first 12.5% of the positions, row by row. BatchNorm and WeightNorm normalize the logits too; the others "
    "cannot, because the logits have one position. The last three rows normalize over other axes. The test error is "
    "that of the checkpoint with the best validation loss. Values are means over the seeds, with their standard "
    "deviation (sd). Published errors are those of the full model and data after 200 epochs; only their order compares."
)
_PUBLISHED = {
    "none": "8.96 %",
    "batchnorm": "8.25 %",
    "weightnorm": "8.28 %",
    "layernorm": "10.49 %",
    "rmsnorm": "8.83 %",
    "prmsnorm": "10.37 %",
}
PUBLISHED_TIMES = {"none": 21, "batchnorm": 38, "weightnorm": 23, "layernorm": 39, "rmsnorm": 31, "prmsnorm": 30}  # s
_PAPER = "Zhang & Sennrich, section 6.4"
_BA = "Ba et al., section 6.7"


_ERROR = best("test_error", "nll")
_COLUMNS = (
    Column("last training loss", last_loss, 3),
    Column("best validation loss", best("nll", "nll"), 3),
    Column("test error, best", _ERROR, 2, "%"),
    Column("test error, last", last("test_error"), 2, "%"),
)
_CURVES = (
    Curve("train", "loss", "training loss, nats", scale="linear"),
    Curve("validations", "test_error", "test error, %", scale="linear"),
)
_COMPARISON = Comparison(
    "test error",
    _ERROR,
    margin=1.0,
    unit=" points",
    expectations=[
        Expectation(
            "rmsnorm", "layernorm", "lower", "RMSNorm has a lower error than LayerNorm", f"{_PAPER}: 8.83, 10.49"
        ),
        Expectation("rmsnorm", "none", "lower", "RMSNorm has a lower error than no norm", f"{_PAPER}: 8.83, 8.96"),
        Expectation(
            "layernorm", "none", "higher", "LayerNorm has a higher error than no norm", f"{_PAPER}: 10.49, 8.96"
        ),
        Expectation(
            "batchnorm", "rmsnorm", "lower", "BatchNorm has a lower error than RMSNorm", f"{_PAPER}: 8.25, 8.83"
        ),
        Expectation(
            "weightnorm", "rmsnorm", "lower", "WeightNorm has a lower error than RMSNorm", f"{_PAPER}: 8.28, 8.83"
        ),
        Expectation("layernorm-all", "none", "lower", "LayerNorm helps a little in networks of convolutions", _BA),
        Expectation("batchnorm", "layernorm-all", "lower", "BatchNorm outperforms LayerNorm there", _BA),
    ],
)
LEARNING = Learning(
    "Loss and error (Zhang & Sennrich 2019, section 6.4)", _TEXT, _COLUMNS, _CURVES, [_COMPARISON], _PUBLISHED
)
