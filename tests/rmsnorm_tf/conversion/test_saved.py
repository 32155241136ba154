"""Changes inside a model in its files: what is loaded computes the same."""

import keras

from rmsnorm_tf import RMSNormGRU, RMSNormLSTM, fold_layer_norm
from tests.folding import assert_same_outputs, dense, layers, norm, with_drawn_weights


def assert_saved(model, folder):
    """Saves a model and loads it, and compares outputs."""
    model.save(folder / "model.keras")
    loaded = keras.models.load_model(folder / "model.keras")
    assert_same_outputs(model, loaded)
    return loaded


def with_norms(stream, count=3):
    """Puts norms behind a stream that no weights centre: as many as a subtraction must serve."""
    return layers.Add()([norm(f"norm_{i}_of_{stream.name}")(stream) for i in range(count)])


def test_a_subtracted_mean_is_saved_whatever_the_layer(tmp_path):
    streams = [
        layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
        layers.TimeDistributed(dense("map", activation="relu")),
        layers.RNN(layers.GRUCell(6), return_sequences=True),
        RMSNormGRU(6, return_sequences=True),
        RMSNormLSTM(6, return_sequences=True),
    ]
    x = keras.Input((4, 6))
    model = with_drawn_weights(keras.Model(x, [with_norms(stream(x)) for stream in streams]))
    folded, report = fold_layer_norm(model)
    assert all(entry.converted for entry in report)
    assert_same_outputs(model, assert_saved(folded, tmp_path))
