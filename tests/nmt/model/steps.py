"""What a step of decoding must do, whatever the model."""

import numpy as np
import tensorflow as tf


def assert_steps_equal_the_whole_sentence(model, source, source_mask, target, atol):
    """Decoding word by word gives the log-probabilities of the whole sentence at once."""
    expected = tf.nn.log_softmax(model(source, source_mask, target)).numpy()
    (state, memory) = model.encode(source, source_mask)
    step = model.make_step()
    for t, words in enumerate(np.vstack([[model.first_word] * len(target), target.T[:-1]])):
        (logits, normalizers), state, memory = step(words, state, memory)
        np.testing.assert_allclose(
            logits - normalizers[:, tf.newaxis], expected[:, t], rtol=1e-4, atol=atol
        )


def assert_hypotheses_share_a_memory(model, source, source_mask):
    """Three hypotheses of each of two sentences equal three copies of it, also if the first step
    has one.
    """
    words = np.array([2, 3, 4, 5, 2, 3])
    steps = []
    step = model.make_step()
    for sentences, first, then in (([0, 1], 3, 1), ([0, 1], 1, 3), ([0, 0, 0, 1, 1, 1], 1, 1)):
        state, memory = model.encode(source[sentences], source_mask[sentences])
        state = tf.nest.map_structure(lambda x, n=first: tf.repeat(x, n, axis=0), state)
        _, state, memory = step(np.full(len(sentences) * first, model.first_word), state, memory)
        state = tf.nest.map_structure(lambda x, n=then: tf.repeat(x, n, axis=0), state)
        _, state, memory = step(words, state, memory)
        steps.append(step(words[::-1], state, memory)[0].logits)
    np.testing.assert_allclose(steps[0], steps[2], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(steps[1], steps[2], rtol=1e-5, atol=1e-5)
    assert not np.allclose(steps[0][0], steps[0][4])  # the same word after another source
