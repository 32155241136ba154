import keras
import numpy as np

from experiments.trials.feeding import in_batches


def test_batches_hold_all_examples_in_order():
    inputs, targets = np.arange(10).reshape(5, 2), np.arange(5)
    batches = list(in_batches(inputs, targets, batch_size=2).as_numpy_iterator())
    assert [len(each) for _, each in batches] == [2, 2, 1]
    np.testing.assert_array_equal(np.concatenate([each for each, _ in batches]), inputs)
    np.testing.assert_array_equal(np.concatenate([each for _, each in batches]), targets)


def test_a_model_predicts_the_same_from_arrays():
    one, other = keras.Input((3,)), keras.Input((3,))
    model = keras.Model([one, other], keras.layers.Dense(2)(one - 2 * other))
    inputs = list(np.random.default_rng(0).normal(size=(2, 5, 3)).astype(np.float32))
    expected = model.predict(inputs, batch_size=2, verbose=0)
    np.testing.assert_allclose(model.predict(in_batches(inputs, batch_size=2), verbose=0), expected, rtol=1e-6)


def test_autotuning_is_off():
    assert in_batches(np.zeros(4), batch_size=2).options().autotune.enabled is False
