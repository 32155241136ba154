import numpy as np
import pytest

pytest.importorskip("scipy")

from experiments.data_sets.novels import split_words
from experiments.skip_thoughts.transfer import (
    MOST,
    Labelled,
    Pairs,
    TransferData,
    measure,
    read_tests,
    score_distributions,
    softmax_regression,
)
from nmt.errors import UserError


def test_the_regression_finds_the_weights_that_made_the_targets():
    generator = np.random.default_rng(0)
    features, weights = generator.normal(size=(500, 3)), generator.normal(size=(3, 4))
    scores = np.exp(features @ weights)
    found = softmax_regression(features, scores / scores.sum(1, keepdims=True), 0.0)
    centred = [each - each.mean(1, keepdims=True) for each in (found, weights)]  # a constant changes nothing
    np.testing.assert_allclose(*centred, atol=0.01)


def test_a_penalty_makes_weights_smaller():
    generator = np.random.default_rng(0)
    features, targets = generator.normal(size=(50, 3)), np.eye(2)[generator.integers(0, 2, 50)]
    sizes = [np.abs(softmax_regression(features, targets, penalty)).sum() for penalty in (1e-4, 1e-1, 10)]
    assert sizes[0] > sizes[1] > sizes[2]


def test_distributions_have_the_scores_as_means():
    scores = np.array([1.0, 2.4, 4.9, 5.0])
    found = score_distributions(scores)
    np.testing.assert_allclose(found.sum(1), 1)
    np.testing.assert_allclose(found @ [1, 2, 3, 4, 5], scores)
    np.testing.assert_allclose(found[1], [0, 0.6, 0.4, 0, 0])


def encode(sentences):
    """Vectors with the meaning of a sentence: its first word is a number."""
    values = np.array([float(sentence[0]) for sentence in sentences])
    return np.stack([np.cos(values), np.sin(values)], -1)


def test_good_vectors_have_high_scores_and_empty_ones_those_of_chance():
    generator = np.random.default_rng(0)

    def pairs():
        a, b = generator.uniform(0, 3, (2, 300))
        return Pairs([[str(x)] for x in a], [[str(x)] for x in b], 1 + 4 * np.abs(np.cos(a - b)))

    values = generator.uniform(0, 3, 200)
    labelled = Labelled([[str(x)] for x in values], (values > 1.5).astype(int))
    tests = TransferData({"train": pairs(), "test": pairs()}, {"MR": labelled, "CR": labelled})
    good = measure(encode, tests)
    assert good["SICK r"] > 70 and good["SICK rho"] > 70 and good["MR"] > 95
    assert good["mean"] == pytest.approx(np.mean([good[name] for name in ("SICK r", "SICK rho", "MR", "CR")]))
    empty = measure(lambda sentences: generator.normal(size=(len(sentences), 2)), tests)
    assert abs(empty["SICK r"]) < 25 and empty["MR"] < 65
    assert empty["SICK MSE"] > 3 * good["SICK MSE"]
    equal = measure(lambda sentences: np.zeros((len(sentences), 2)), tests)
    assert (equal["SICK r"], equal["SICK rho"]) == (0, 0)


def test_files_are_read(tests):
    assert tests.sick["train"].first[0] == ["Emma", "saw", "the", "day"]
    assert set(tests.sick["test"].scores) <= {1.0, 2.0, 3.0, 4.0, 5.0}
    assert tests.classes["CR"].sentences[1] == ["Emma", "saw", "caf\xe9", "1"]
    assert tests.classes["MPQA"].classes.tolist() == [0, 1] * 15


def test_long_files_are_sampled_from_beginning_to_end(data):
    lines = [f"{number % 2} {number}" for number in range(3 * MOST)]
    (data / "tests" / "subj.all").write_text("\n".join(lines))
    sentences = [int(sentence[0]) for sentence in read_tests(str(data / "tests")).classes["SUBJ"].sentences]
    assert len(sentences) == MOST and sentences[0] == 0 and sentences[-1] == 3 * MOST - 1
    assert set(np.diff(sentences)) <= {2, 3, 4}


def test_words_are_split_as_in_the_novels(data):
    (data / "tests" / "subj.all").write_bytes(b"1 it isn't well-made\n")
    assert read_tests(str(data / "tests")).classes["SUBJ"].sentences == [split_words("it isn't well-made")]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("subj.all", b"1 fine\n\n2 wrong\n", "subj.all, line 3 has another form"),
        ("subj.all", b"1\n", "subj.all, line 1 has another form"),
        ("subj.all", b"\n", "subj.all has no lines"),
    ],
)
def test_a_damaged_file_is_named(data, name, content, said):
    (data / "tests" / name).write_bytes(content)
    with pytest.raises(UserError, match=said):
        read_tests(str(data / "tests"))


def test_vectors_of_a_network_that_diverged_have_no_scores(tests):
    found = measure(lambda sentences: np.full((len(sentences), 2), np.nan), tests)
    assert set(found) == {"SICK r", "SICK rho", "SICK MSE", "MR", "CR", "SUBJ", "MPQA", "mean"}
    assert np.isnan(list(found.values())).all()


def test_a_missing_file_is_named(data):
    (data / "tests" / "subj.all").unlink()
    with pytest.raises(UserError, match=r"lacks subj\.all; it needs SICK, and MR, CR, SUBJ and MPQA"):
        read_tests(str(data / "tests"))
