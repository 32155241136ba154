import keras
import numpy as np
import pytest

from experiments.reader import rows
from experiments.reader.data import ENTITIES, FIRST_ENTITY, GAP, LONGEST_PASSAGE, QUESTION
from experiments.reader.model import Renumber, Sizes, build_model
from experiments.trials.trial import rows_of

ROWS = {row.name: row for row in rows_of(rows)}
SIZES = Sizes(units=3, word_units=4)


def small(row="rmsnorm", seed=1):
    return build_model(ROWS[row], 1e-3, seed, SIZES)


def texts(count=4):
    generator = np.random.default_rng(0)
    passages, questions = np.zeros((count, LONGEST_PASSAGE), np.int32), np.zeros((count, QUESTION[1]), np.int32)
    passages[:, :30] = generator.integers(FIRST_ENTITY, 60, (count, 30))
    questions[:, :8] = generator.integers(FIRST_ENTITY, 60, (count, 8))
    questions[:, 3] = GAP
    return [passages, questions]


def test_entities_are_renumbered_in_training_alone():
    layer, (passages, questions) = Renumber(1), texts()
    same = layer(passages, questions)
    np.testing.assert_array_equal(same[0], passages)
    np.testing.assert_array_equal(same[2], np.tile(np.arange(ENTITIES), (4, 1)))
    new_passages, new_questions, numbers = map(np.asarray, layer(passages, questions, training=True))
    assert {tuple(sorted(row)) for row in numbers} == {tuple(range(ENTITIES))}
    assert len({tuple(row) for row in numbers}) == 4
    for old, new in ((passages, new_passages), (questions, new_questions)):
        for row in range(4):
            expected = [
                FIRST_ENTITY + numbers[row, i - FIRST_ENTITY] if FIRST_ENTITY <= i < FIRST_ENTITY + ENTITIES else i
                for i in old[row]
            ]
            np.testing.assert_array_equal(new[row], expected)


def test_logits_stay_with_their_entities():
    """With equal rows and columns for all entities but one number, only that number's entity has another logit."""
    model = small()
    embedding = model.get_layer("words").embeddings
    table = embedding.numpy()
    table[FIRST_ENTITY : FIRST_ENTITY + ENTITIES] = table[FIRST_ENTITY]
    embedding.assign(table)
    kernel = model.get_layer("entities").get_weights()[0]
    model.get_layer("entities").set_weights([np.repeat(kernel[:, :1], ENTITIES, 1), np.eye(ENTITIES)[0]])
    calm = np.asarray(model(texts()))
    assert (calm.argmax(-1) == 0).all()  # number 0 is entity 0
    drawn = np.asarray(model(texts(), training=True))
    np.testing.assert_allclose(np.sort(calm, -1), np.sort(drawn, -1), rtol=1e-5)
    assert len(set(drawn.argmax(-1))) > 1


@pytest.mark.parametrize("row", ROWS)
def test_initial_weights_and_numbers_depend_on_the_seed_alone(row):
    def kernel(model):
        return model.get_layer("passage").forward_layer.cell.kernel.numpy()

    np.testing.assert_array_equal(kernel(small(row)), kernel(small("none")))
    assert np.abs(kernel(small(row, 2)) - kernel(small("none"))).max() > 0


def test_padding_has_no_effect():
    model, (passages, questions) = small(), texts()
    before = np.asarray(model([passages, questions]))
    table = model.get_layer("words").embeddings.numpy()
    table[0] += 5
    model.get_layer("words").embeddings.assign(table)
    np.testing.assert_allclose(before, model([passages, questions]), rtol=1e-4, atol=1e-5)


def test_the_attention_finds_a_repeated_pattern():
    """The entity after a marker word is the answer: the network learns it, whatever the numbers."""
    generator = np.random.default_rng(0)
    passages, questions = texts(256)
    answers = generator.integers(0, 5, 256)
    passages[:, 5:] = 0
    passages[:, :5] = [np.random.default_rng(i).permutation(5) + FIRST_ENTITY for i in range(256)]
    passages[np.arange(256), 5] = 50
    passages[np.arange(256), 6] = FIRST_ENTITY + answers
    model = build_model(ROWS["layernorm"], 0.01, 1, Sizes(units=16, word_units=16))
    history = model.fit([passages, questions], answers, batch_size=64, epochs=30, verbose=0)
    assert history.history["loss"][-1] < 0.5 * np.log(ENTITIES)


def test_a_trained_model_is_saved_and_loaded(tmp_path):
    model = small()
    model.fit(texts(), np.zeros(4), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(loaded(texts()), model(texts()), rtol=1e-5)
