import keras
import numpy as np
import pytest

from experiments.order_embeddings.model import MARGIN, build_model, order_loss, order_penalties
from experiments.order_embeddings.task import retrieval_scores
from experiments.runs.kinds import CELL_CONDITIONS

RMSNORM = next(condition for condition in CELL_CONDITIONS if condition.name == "rmsnorm")


def small():
    return build_model(RMSNORM, 1e-3, 1, features=7, units=4, word_units=3)


def test_embeddings_have_length_1_and_no_negative_entry():
    captions = np.zeros((5, 20), np.int32)
    captions[:, :3] = 4
    images = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    found = np.asarray(small()([images, captions]))
    assert found.shape == (5, 2, 4)
    assert found.min() >= 0
    np.testing.assert_allclose((found**2).sum(-1), 1, rtol=1e-5)


def test_a_model_that_diverged_finds_nothing():
    images = np.full((20, 3), np.nan, np.float32)
    assert retrieval_scores(images, np.stack([images, images], 1))["missed"] == 100


def test_padding_does_not_change_a_caption():
    model = small()
    captions = np.zeros((1, 20), np.int32)
    captions[0, :3] = 4, 5, 6
    state = np.asarray(model.get_layer("gru")(model.get_layer("words")(captions[:, :3])))[0]
    expected = np.abs(state) / np.linalg.norm(state)
    np.testing.assert_allclose(
        model([np.ones((1, 7), np.float32), captions])[0, 1], expected, rtol=1e-4, atol=1e-6
    )


def test_the_penalty_is_zero_where_the_caption_is_above_the_image():
    """Vendrov et al.

    (2016), equation 2: y is above x if every coordinate of y is at most that of x.
    """
    images = np.array([[0.5, 0.5], [0.0, 1.0]])
    captions = np.array([[0.25, 0.5], [1.0, 0.0]])
    np.testing.assert_allclose(order_penalties(images, captions), [[0, 0.25], [0.0625, 1]])


def test_the_loss_is_the_sum_of_all_hinges():
    embeddings = np.random.default_rng(0).random((4, 2, 3)).astype(np.float32)
    images = embeddings[:, 0]
    captions = embeddings[:, 1]

    def penalty(caption, image):
        return (np.maximum(0, caption - image) ** 2).sum()

    expected = sum(
        max(0, MARGIN + penalty(captions[i], images[i]) - penalty(captions[j], images[i]))
        + max(0, MARGIN + penalty(captions[i], images[i]) - penalty(captions[i], images[j]))
        for i in range(4)
        for j in range(4)
        if i != j
    )
    np.testing.assert_allclose(
        order_loss(None, keras.ops.convert_to_tensor(embeddings)), expected, rtol=1e-5
    )


def test_scores_of_a_perfect_embedding():
    images = np.eye(60, dtype=np.float32)
    found = retrieval_scores(images, np.stack([images, images / 2], 1))
    assert found["missed"] == 0
    assert (found["caption_rank"], found["image_rank"]) == (1, 1)


def test_ranks_count_the_better_ones():
    """Image 0 is nearer to both captions of image 1 than to its own.

    The captions of image 0 suit image 1 better.
    """
    images = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    captions = np.array([[[0.0, 0.5], [0.0, 0.6]], [[0.0, 0.1], [0.0, 0.2]]], np.float32)
    found = retrieval_scores(images, captions)
    # Image 0: penalties 0.25, 0.36, 0.01, 0.04; its best one has rank 3. Image 1: all 0, so the two
    # others tie, rank 3.
    assert found["caption_rank"] == 3
    # Captions of image 0: image 1 is better, rank 2. Captions of image 1: rank 1.
    assert found["image_rank"] == 1.5
    assert (found["caption_r1"], found["caption_r5"], found["image_r1"]) == (0, 100, 50)
    assert found["missed"] == pytest.approx(100 - (0 + 100 + 100 + 50 + 100 + 100) / 6)
