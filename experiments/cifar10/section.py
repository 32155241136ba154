"""What the CIFAR-10 report says of learning."""

from ..trials.learning import Column, Curve, Learning, best, last, last_loss

_TEXT = (
    "ConvPool-CNN-C with fewer channels than the paper's, trained by Adam on ZCA-whitened images with noise and "
    "dropout. The learning rate is constant for the first half of the training, and then falls to 0. As in the paper's "
    "code, LayerNorm and RMSNorm normalize each channel over height and width (instance normalization); pRMSNorm takes "
    "the first 12.5% of the positions, row by row. BatchNorm and WeightNorm normalize the logits too; the others "
    "cannot, because the logits have one position. The last three rows normalize over other axes. The test error is "
    "that of the checkpoint with the best validation loss. Values are means over the seeds, with their standard "
    "deviation (sd). Published errors are those of the full model and data after 200 epochs; only their order compares."
    " The errors here are of the first six epochs and far from these, so no claim is judged."
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
_COLUMNS = (
    Column("last training loss", last_loss, 3),
    Column("best validation loss", best("nll", "nll"), 3),
    Column("test error, best", best("test_error", "nll"), 2, "%"),
    Column("test error, last", last("test_error"), 2, "%"),
)
_CURVES = (
    Curve("train", "loss", "training loss, nats", scale="linear"),
    Curve("validations", "test_error", "test error, %", scale="linear"),
)
LEARNING = Learning("Loss and error (Zhang & Sennrich 2019, section 6.4)", _TEXT, _COLUMNS, _CURVES, (), _PUBLISHED)
