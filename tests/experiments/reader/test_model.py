import keras
import numpy as np
import pytest

from experiments.reader.data import ENTITIES, FIRST_ENTITY, GAP, PADDING, PASSAGE, SENTENCE
from experiments.reader.model import Renumber, build_model
from experiments.reader.task import CONDITIONS as ALL
from tests.parameters import quick_one_of

CONDITIONS = {condition.name: condition for condition in ALL}
SIZES = {"units": 8, "word_units": 4}


def small(condition="rmsnorm", seed=1):
    return build_model(CONDITIONS[condition], 1e-3, seed, **SIZES)


def texts(count=4):
    generator = np.random.default_rng(0)
    passages = generator.integers(FIRST_ENTITY, 60, (count, PASSAGE)).astype(np.int32)
    questions = np.zeros((count, SENTENCE[1]), np.int32)
    questions[:, :8] = generator.integers(FIRST_ENTITY, 60, (count, 8))
    questions[:, 3] = GAP
    return [passages, questions]


def test_entities_are_renumbered_in_training_alone():
    layer = Renumber(1)
    (passages, questions) = texts()
    same = layer(passages, questions)
    np.testing.assert_array_equal(same[0], passages)
    np.testing.assert_array_equal(same[2], np.tile(np.arange(ENTITIES), (4, 1)))
    new_passages, new_questions, numbers = map(
        np.asarray, layer(passages, questions, training=True)
    )
    assert {tuple(sorted(condition)) for condition in numbers} == {tuple(range(ENTITIES))}
    assert len({tuple(condition) for condition in numbers}) == 4
    for old, new in ((passages, new_passages), (questions, new_questions)):
        for condition in range(4):
            expected = [
                FIRST_ENTITY + numbers[condition, i - FIRST_ENTITY]
                if FIRST_ENTITY <= i < FIRST_ENTITY + ENTITIES
                else i
                for i in old[condition]
            ]
            np.testing.assert_array_equal(new[condition], expected)


def test_logits_stay_with_their_entities():
    """Only one entity, with rows and columns of its own, has another logit."""
    model = small()
    embedding = model.get_layer("words").embeddings
    table = embedding.numpy()
    table[FIRST_ENTITY : FIRST_ENTITY + ENTITIES] = table[FIRST_ENTITY]
    embedding.assign(table)
    kernel = model.get_layer("entities").get_weights()[0]
    model.get_layer("entities").set_weights(
        [np.repeat(kernel[:, :1], ENTITIES, 1), np.eye(ENTITIES)[0]]
    )
    calm = np.asarray(model(texts()))
    assert (calm.argmax(-1) == 0).all()  # number 0 is entity 0
    drawn = np.asarray(model(texts(), training=True))
    np.testing.assert_allclose(np.sort(calm, -1), np.sort(drawn, -1), rtol=1e-5)
    assert len(set(drawn.argmax(-1))) > 1


def test_the_numbers_of_a_training_depend_on_the_seed_alone():
    def numbers(seed):
        return np.asarray(small(seed=seed).get_layer("numbers")(*texts(), training=True)[2])

    one, same, other = map(numbers, (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()


def test_the_output_follows_the_equations():
    """The reference takes the states of the LSTMs and computes the rest in NumPy."""
    model = small()
    read = [model.get_layer(name).output for name in ("passage", "question")]
    probe = keras.Model(model.inputs, [*read, model.output])
    states, asked, found = map(np.asarray, probe(texts(2)))

    def kernel(name):
        return model.get_layer(name).kernel.numpy()

    for condition, (d, q) in enumerate(zip(states, asked, strict=True)):
        m = np.tanh(
            d @ kernel("d_match")
            + q @ kernel("q_match")
            + (d @ kernel("d_similar")) * (q @ kernel("q_similar"))
        )
        a = np.exp(m @ kernel("attention"))
        r = (a / a.sum() * d).sum(0)
        joined = np.tanh(r @ kernel("read") + q @ kernel("asked") + d.mean(0) @ kernel("average"))
        np.testing.assert_allclose(
            found[condition], joined @ kernel("entities"), rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("condition", quick_one_of(5, CONDITIONS))
def test_padding_of_questions_does_not_enter(condition):
    model = small(condition)
    read = keras.Model(model.inputs, model.get_layer("question").output)
    read(texts(2))  # the first call compiles the norms, and rounds differently
    before = np.asarray(read(texts(2)))
    table = model.get_layer("words").embeddings.numpy()
    table[PADDING] += 5
    model.get_layer("words").embeddings.assign(table)
    np.testing.assert_array_equal(before, read(texts(2)))


def test_a_row_sets_the_initial_gains():
    def gains(condition):
        return {
            float(gain)
            for weight in small(condition).weights
            if weight.name in ("scale", "gamma")
            for gain in weight.numpy()
        }

    assert gains("rmsnorm") == gains("layernorm") == {1.0}
    assert (
        gains("rmsnorm-gain-0.1")
        == gains("layernorm-gain-0.1")
        == gains("batchnorm")
        == {float(np.float32(0.1))}
    )


@pytest.mark.slow
def test_all_terms_before_a_tanh_are_normalized_over_the_batch():
    """In training, a unit of a term has mean beta = 0 and deviation gamma = 0.1."""
    model = small("batchnorm-everywhere")
    names = ("d_match", "q_match", "d_similar", "q_similar", "read", "asked", "average")
    for layer in model.layers:
        if layer.name in names:
            layer.kernel.assign(1000 * layer.kernel)  # epsilon is small beside the variance
    probe = keras.Model(model.inputs, [model.get_layer(f"{name}_norm").output for name in names])
    for term in probe(texts(64), training=True):
        flat = np.asarray(term).reshape(-1, term.shape[-1])
        np.testing.assert_allclose(flat.mean(0), 0, atol=1e-4)
        np.testing.assert_allclose(flat.std(0), 0.1, rtol=0.05)


@pytest.mark.slow
def test_the_network_finds_the_entity_after_a_mark():
    """Every passage has the same five entities; a mark stands before the answer.

    Guessing among them gives ln 5.
    """
    generator = np.random.default_rng(0)
    passages, questions = texts(256)
    questions[:] = questions[0]
    passages[:] = 60
    passages[:, 0:10:2] = generator.permuted(np.tile(np.arange(5), (256, 1)), axis=1) + FIRST_ENTITY
    places = generator.integers(1, 5, 256)
    examples = np.arange(256)
    passages[:, 1:10:2] = 50
    passages[examples, 2 * places - 1] = 51
    answers = passages[examples, 2 * places] - FIRST_ENTITY
    model = build_model(CONDITIONS["layernorm"], 0.01, 1, units=16, word_units=16)
    history = model.fit([passages, questions], answers, batch_size=64, epochs=60, verbose=0)
    assert history.history["loss"][-1] < 0.5 * np.log(5)
