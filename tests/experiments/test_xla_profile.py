import pytest
import tensorflow as tf

from experiments.xla_profile import Operation, profile, seconds_by_part


def profiled(function, *inputs):
    """Returns the shares of the parts in the second call of a function that XLA compiles."""
    compiled = tf.function(function, jit_compile=True)
    compiled(*inputs)
    seconds, spent = profile(lambda: compiled(*inputs).numpy())
    return {part: each / seconds for part, each in spent.items()}


@pytest.mark.parametrize("part", ["matmul", "softmax"])
def test_what_does_little_else_is_found_to(part):
    square = tf.random.normal([1500, 1500])
    function = {"matmul": lambda x: tf.reduce_sum(x @ x @ x), "softmax": lambda x: tf.reduce_max(tf.nn.softmax(x))}[
        part
    ]
    found = profiled(function, square)
    assert 0.1 < found.pop(part) <= 1  # of the time of the call, with what else the machine does meanwhile
    assert list(found.values()) == [0]


def test_products_in_a_loop_count_once():
    def function(x):
        return tf.while_loop(lambda i, _: i < 20, lambda i, y: (i + 1, tf.tanh(y @ x)), [0, x])[1]

    found = profiled(function, tf.random.normal([600, 600]))
    assert 0.1 < found["matmul"] <= 1


def test_a_product_with_a_vector_is_a_sum_and_no_matrix_product():
    square, vector = tf.random.normal([1500, 1500]), tf.random.normal([1500, 1])
    assert profiled(lambda x, v: x @ v, square, vector) == {"matmul": 0, "softmax": 0}


def test_time_is_divided_among_what_runs_at_once():
    ran = [Operation(0, 6, "matmul"), Operation(0, 6, "matmul"), Operation(3, 9, "rest"), Operation(10, 11, "softmax")]
    assert seconds_by_part(ran) == {"matmul": 3 + 2, "rest": 1 + 3, "softmax": 1}
