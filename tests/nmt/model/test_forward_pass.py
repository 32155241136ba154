"""Dropout masks."""

import numpy as np
import tensorflow as tf

from nmt.model.forward_pass import ForwardPass, drop

SEED = tf.constant([1, 2])


class TestDropout:
    def test_mask_keeps_the_mean(self):
        mask = ForwardPass(SEED).draw(0.25, [200, 200]).numpy()
        np.testing.assert_allclose(np.unique(mask), [0, 1 / 0.75])
        # Four standard deviations of the share kept, over 40,000 draws.
        np.testing.assert_allclose((mask > 0).mean(), 0.75, atol=4 * np.sqrt(0.75 * 0.25 / 40_000))

    def test_a_mask_is_the_same_inside_and_outside_of_xla(self):
        expected = ForwardPass(SEED).draw(0.3, [5, 7])
        compiled = tf.function(lambda: ForwardPass(SEED).draw(0.3, [5, 7]), jit_compile=True)
        np.testing.assert_array_equal(compiled(), expected)

    def test_entries_are_independent(self):
        """The products of the signs of each entry and of the one 1, 2, 3, 4 or 97 later have mean
        0.
        """
        signs = np.sign(ForwardPass(SEED).draw(0.5, [100_000]).numpy() - 1)
        for distance in (1, 2, 3, 4, 97):
            assert abs(np.mean(signs[distance:] * signs[:-distance])) < 4 / np.sqrt(100_000)

    def test_masks_of_other_updates_seeds_and_numbers_are_independent(self):
        """Neighbouring seeds, updates and masks, and those with seed and update exchanged."""
        seeds = [(1, 2), (1, 3), (2, 2), (2, 1), (1, 2 + 2**16), (2**31 - 1, 2)]
        passes = [ForwardPass(tf.constant(seed)) for seed in seeds]
        masks = [each.draw(0.5, [50_000]).numpy() for each in np.repeat(passes, 2)]
        signs = np.sign(np.array(masks) - 1)
        assert np.abs(np.corrcoef(signs) - np.eye(12)).max() < 5 / np.sqrt(50_000)
        stretches = np.lib.stride_tricks.sliding_window_view(signs > 0, 64, axis=1)
        numbers = np.packbits(stretches, axis=-1).view(np.uint64)
        assert np.unique(numbers).size == numbers.size  # no mask repeats a part of another one

    def test_a_rate_close_to_1_keeps_the_mask_finite(self):
        assert np.isfinite(ForwardPass(SEED).draw(0.9999999, [1000])).all()

    def test_same_seed_same_masks_and_each_its_own(self):
        one = ForwardPass(SEED)
        other = ForwardPass(SEED)
        first = one.draw(0.5, [8, 8])
        second = one.draw(0.5, [8, 8])
        np.testing.assert_array_equal(first, other.draw(0.5, [8, 8]))
        assert (first != second).numpy().any()
        assert (first != ForwardPass(tf.constant([1, 3])).draw(0.5, [8, 8])).numpy().any()

    def test_off(self):
        assert ForwardPass(None).draw(0.5, [8, 8]) is None
        assert ForwardPass(SEED).draw(0.0, [8, 8]) is None
        x = tf.ones([2, 3])
        assert drop(x, None) is x

    def test_one_mask_serves_all_time_steps(self):
        mask = tf.constant([[0.0, 2.0], [2.0, 0.0]])
        dropped = drop(tf.ones([2, 3, 2]), mask)
        np.testing.assert_array_equal(dropped, np.repeat(mask.numpy()[:, None], 3, 1))
