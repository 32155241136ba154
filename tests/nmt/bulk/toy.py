"""A tiny export that translates in a way that is easy to check, slowly or not at all if a line asks
for it.
"""

import tensorflow as tf

HUGE = 2**38  # bytes that the toy asks for at once


class Toy(tf.Module):
    """Upper case. Fails on a line with `poison`; takes about 20 ms for one with `slow`; `two` gives
    a line feed.

    Of a line with `endless` it says that it has read only the beginning, and of a translation with
    `CUT` that the limit ended it. A line with `huge` asks for `HUGE` bytes. If there are fewer,
    TensorFlow aborts the process.
    """

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="sources")])
    def serve(self, sources):
        poisonous = tf.strings.regex_full_match(sources, ".*poison.*")
        tf.debugging.Assert(tf.logical_not(tf.reduce_any(poisonous)), ["a line is poisonous"])
        slow = tf.reduce_sum(tf.cast(tf.strings.regex_full_match(sources, ".*slow.*"), tf.int32))

        def step(i, x):
            return i + 1, tf.tanh(x @ x)

        x = tf.ones([120, 120]) / 120.0
        _, x = tf.while_loop(lambda i, _: i < 200 * slow, step, (0, x), parallel_iterations=1)
        is_huge = tf.reduce_any(tf.strings.regex_full_match(sources, ".*huge.*"))
        block = tf.strings.join([tf.where(is_huge, "x" * 2**14, "")] * 2**12)
        nothing = tf.strings.substr(tf.strings.join([block] * (HUGE // 2**26)), 0, 0)
        text = nothing + tf.strings.regex_replace(
            tf.strings.upper(sources, encoding="utf-8"), "TWO", "TWO\n"
        )
        return {
            "translations": text + tf.where(tf.math.is_nan(x[0, 0]), "?", ""),
            "source_cut": tf.strings.regex_full_match(sources, ".*endless.*"),
            "translation_cut": tf.strings.regex_full_match(text, ".*CUT.*"),
        }


def write_toy(path):
    """Exports the toy; returns its path."""
    toy = Toy()
    tf.saved_model.save(toy, str(path), signatures={"serving_default": toy.serve})
    return path


def words_of(export, *inputs, **options):
    """Returns the words of a command that translates files with an export into the folder `out`."""
    words = ["--export", export, "--input", *inputs, "--output", "out"]
    for name, value in options.items():
        words += [f"--{name}", value]
    return words
