"""What sentence vectors are good for: relatedness of sentences, and classes of sentences."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax
from scipy.stats import pearsonr, spearmanr

from nmt.errors import UserError

from ..data_sets.novels import Sentence, split_words
from ..data_sets.text_files import find_text, read_text

SICK = {"train": "SICK_train", "test": "SICK_test_annotated"}
CLASSES = {"MR": "rt-polarity", "CR": "custrev", "SUBJ": "subj", "MPQA": "mpqa"}  # names of the files
FOLDS = 5
MOST = 2000  # examples of a file; of longer files, this many are evenly spread
_NEEDS = "SICK, and MR, CR, SUBJ and MPQA as Kim (2014) has them"
_PENALTIES = (1e-4, 1e-3, 1e-2)  # on the squared weights, for each example
_SCORES = np.arange(1, 6)  # the labels of SICK

Encode = Callable[[list[Sentence]], np.ndarray]  # sentences to vectors `[sentences, units]`


class Pairs(NamedTuple):
    """Pairs of sentences and how related they are, from 1 to 5."""

    first: list[Sentence]
    second: list[Sentence]
    scores: np.ndarray


class Labelled(NamedTuple):
    """Sentences with the classes 0 and 1."""

    sentences: list[Sentence]
    classes: np.ndarray


class TransferData(NamedTuple):
    """The data of all tests."""

    sick: dict[str, Pairs]
    classes: dict[str, Labelled]


def read_tests(data: str) -> TransferData:
    """Reads SICK and the four sets of labelled sentences from one folder, plain or .gz; see `MOST`.

    Raises:
        UserError: A file is missing or damaged.
    """
    folder = Path(data)
    sick = {part: _read_pairs(find_text(folder, f"{name}.txt", _NEEDS)) for part, name in SICK.items()}
    classes = {name: _read_labelled(find_text(folder, f"{file}.all", _NEEDS)) for name, file in CLASSES.items()}
    return TransferData(sick, classes)


def measure(encode: Encode, tests: TransferData) -> dict[str, float]:
    """Returns the scores of sentence vectors.

    Returns:
        `SICK r`, `SICK rho` and the accuracies by the names of `CLASSES`, all times 100; `SICK MSE`; and `mean`, the
        mean of all but the MSE. All are NaN if a vector is not finite.
    """
    if not np.isfinite(encode(tests.sick["test"].first)).all():  # the network diverged
        return dict.fromkeys(("SICK r", "SICK rho", "SICK MSE", *tests.classes, "mean"), np.nan)
    found = _relatedness(encode, tests.sick)
    for name, labelled in tests.classes.items():
        found[name] = 100 * _accuracy(encode(labelled.sentences), labelled.classes)
    return {**found, "mean": float(np.mean([score for name, score in found.items() if name != "SICK MSE"]))}


def softmax_regression(features: np.ndarray, targets: np.ndarray, penalty: float) -> np.ndarray:
    """Returns the weights that minimize the mean cross entropy to target distributions plus a penalty.

    Args:
        features: `[examples, features]`.
        targets: `[examples, classes]`; each row sums to 1.
        penalty: Times the sum of the squared weights.

    Returns:
        Weights `[features, classes]`.
    """
    shape = features.shape[1], targets.shape[1]

    def cost(flat):
        weights = flat.reshape(shape)
        log_probabilities = log_softmax(features @ weights, -1)
        slope = features.T @ (np.exp(log_probabilities) - targets) / len(features) + 2 * penalty * weights
        value = -np.mean(np.sum(targets * log_probabilities, -1)) + penalty * np.sum(weights**2)
        return value, slope.reshape(-1)

    return minimize(cost, np.zeros(shape).reshape(-1), jac=True, method="L-BFGS-B", options={"maxiter": 200}).x.reshape(
        shape
    )


def _relatedness(encode: Encode, sick: dict[str, Pairs]) -> dict[str, float]:
    """Predicts scores from |a - b| and a * b. Reference: Tai et al. (2015), arXiv:1503.00075, section 4.2."""

    def features(pairs: Pairs) -> np.ndarray:
        a, b = encode(pairs.first), encode(pairs.second)
        return np.concatenate([np.abs(a - b), a * b], -1)

    train, test = _standardized(features(sick["train"]), features(sick["test"]))
    weights = softmax_regression(train, score_distributions(sick["train"].scores), _PENALTIES[1])
    found = np.exp(log_softmax(test @ weights, -1)) @ _SCORES
    truth = sick["test"].scores
    varies = np.ptp(found) > 0  # otherwise there is no correlation
    return {
        "SICK r": 100 * float(pearsonr(found, truth).statistic) if varies else 0.0,
        "SICK rho": 100 * float(spearmanr(found, truth).statistic) if varies else 0.0,
        "SICK MSE": float(np.mean((found - truth) ** 2)),
    }


def score_distributions(scores: np.ndarray) -> np.ndarray:
    """Returns distributions over 1 to 5 with these means, on the two whole numbers around each score, `[scores, 5]`."""
    return np.maximum(0, 1 - np.abs(scores[:, None] - _SCORES))


def _accuracy(features: np.ndarray, classes: np.ndarray) -> float:
    """Returns the accuracy of a cross-validation; each fold chooses its penalty on a part of its training examples."""
    fold = np.random.default_rng(0).permutation(len(classes)) % FOLDS
    right = 0.0
    for number in range(FOLDS):
        inner = fold == (number + 1) % FOLDS
        rest = (fold != number) & ~inner
        best = max(_PENALTIES, key=lambda penalty: _right(features, classes, rest, inner, penalty))
        right += _right(features, classes, fold != number, fold == number, best)
    return right / len(classes)


def _right(features, classes, train, test, penalty) -> float:
    """Returns how many test examples a model of the training examples classifies rightly."""
    inputs, test_inputs = _standardized(features[train], features[test])
    weights = softmax_regression(inputs, np.eye(2)[classes[train]], penalty)
    return float(np.sum(np.argmax(test_inputs @ weights, -1) == classes[test]))


def _standardized(train: np.ndarray, test: np.ndarray) -> list[np.ndarray]:
    """Returns features with mean 0 and variance 1 over the training examples, and a 1 as last feature."""
    mean, deviation = train.mean(0), train.std(0) + 1e-6
    return [np.pad((part - mean) / deviation, ((0, 0), (0, 1)), constant_values=1) for part in (train, test)]


def _read_pairs(path: Path) -> Pairs:
    def read(line: str) -> tuple[Sentence, Sentence, float]:
        _, first, second, score, *_ = line.split("\t")
        return split_words(first), split_words(second), float(score)

    first, second, scores = zip(*_parsed(path, "utf-8", read, head=1), strict=True)
    return Pairs(list(first), list(second), np.array(scores))


def _read_labelled(path: Path) -> Labelled:
    def read(line: str) -> tuple[Sentence, int]:
        label, text = line.split(" ", 1)
        return split_words(text), ("0", "1").index(label)

    sentences, classes = zip(*_parsed(path, "latin-1", read), strict=True)
    return Labelled(list(sentences), np.array(classes))


def _parsed(path: Path, encoding: str, read: Callable[[str], Any], head: int = 0) -> list[Any]:
    """Returns what `read` makes of up to `MOST` lines after the head, empty lines left out."""
    found = []
    for number, line in enumerate(read_text(path, encoding).split("\n")[head:], head + 1):
        if line.strip():
            try:
                found.append(read(line))
            except ValueError as error:
                raise UserError(f"{path}, line {number} has another form than expected: {error}") from None
    if not found:
        raise UserError(f"{path} has no lines")
    return [found[number] for number in np.unique(np.linspace(0, len(found) - 1, MOST).astype(int))]
