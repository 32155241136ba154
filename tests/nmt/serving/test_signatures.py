"""The signatures of an export, called in process."""

import numpy as np
import pytest
import tensorflow as tf

from nmt.decoding.options import DecodingOptions
from nmt.decoding.scoring import Scorer
from nmt.decoding.translator import Translator
from nmt.serving.signatures import SENTENCES, Signatures, in_slices
from nmt.text.batches import LONGEST, TOKENS
from tests.nmt.serving.exports import (
    SOURCE,
    TARGET,
    make_model,
    make_signatures,
    models,
    strange_strings,
)

rnn = pytest.mark.parametrize("signatures", ["rnn"], indirect=True, scope="module")


@models("transformer")
def test_n_best_counts_what_was_found(signatures):
    found = {
        name: value.numpy()
        for name, value in signatures.n_best(tf.constant(strange_strings(50))).items()
    }
    assert found["translations"].shape == found["scores"].shape == (50, 2)
    assert set(found["counts"]) == {1, 2}  # an empty sentence has one translation
    for texts, scores, count in zip(
        *(found[key] for key in ("translations", "scores", "counts")), strict=True
    ):
        assert list(scores[:count]) == sorted(scores[:count])
        assert set(texts[count:]) <= {b""}
        assert set(scores[count:]) <= {0.0}


@pytest.mark.slow
def test_scores_are_those_of_the_command(vocabularies):
    signatures = make_signatures(vocabularies, "layernorm")
    sources = [*SOURCE, "a", "", "ab " * LONGEST]
    targets = [*TARGET[:5], "", "", ""]
    expected = Scorer(
        vocabularies, make_model(vocabularies, "layernorm"), DecodingOptions()
    ).scores_of(
        [
            (source.encode(), target.encode())
            for source, target in zip(sources, targets, strict=True)
        ]
    )
    found = signatures.score(tf.constant(sources), tf.constant(targets))["scores"].numpy()
    assert np.isinf(found).tolist() == [False] * 7 + [True]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@models("transformer")
def test_only_what_is_longer_than_the_limit_is_cut(signatures, vocabularies):
    """A sentence of as many tokens is read and scored as a whole."""
    assert vocabularies.source.encode(tf.constant(["Haus"])).row_lengths().numpy() == [1]
    sources = tf.constant(["Haus " * LONGEST, "Haus " * (LONGEST + 1)])
    assert signatures.serve(sources)["source_cut"].numpy().tolist() == [False, True]
    scores = signatures.score(sources, tf.constant(["", ""]))["scores"].numpy()
    assert np.isinf(scores).tolist() == [False, True]


def arrays(outputs):
    return {name: value.numpy() for name, value in outputs.items()}


@models("transformer")
def test_translations_begin_with_their_prefixes(signatures):
    """Those without a prefix are as ever. A prefix that is too long is cut, and flagged."""
    sources = [*SOURCE, "", ""]
    prefixes = ["дом", "", "жук щи", "", TARGET[19] * 2, "дом", ""]
    found = arrays(signatures.with_prefix(tf.constant(sources), tf.constant(prefixes)))
    usual = arrays(signatures.serve(tf.constant(sources)))
    translations = [text.decode() for text in found["translations"]]
    assert all(
        text.startswith(prefix[:4]) for text, prefix in zip(translations, prefixes, strict=True)
    )
    assert found["translation_cut"][4]
    for name in ("translations", "scores", "translation_cut"):
        assert all(found[name][i] == usual[name][i] for i in (1, 3, 6))
    with pytest.raises(tf.errors.InvalidArgumentError, match="give as many prefixes as sources"):
        signatures.with_prefix(tf.constant(["a", "b"]), tf.constant(["a"]))


@pytest.mark.usefixtures("eagerly")
def test_a_prefix_that_is_cut_is_flagged_though_the_model_would_end_there(vocabularies):
    model = make_model(vocabularies, "layernorm")
    bias = model.decoder.output_bias
    bias.assign(bias.numpy() + 100.0 * np.eye(vocabularies[1].size)[0])
    translator = Translator(
        vocabularies, model, DecodingOptions(beam_size=2, translation_maxlen=10)
    )
    signatures = Signatures(vocabularies, model, translator)
    found = signatures.with_prefix(tf.constant(["a", "a"]), tf.constant([TARGET[19] * 4, "дом"]))
    assert found["translation_cut"].numpy().tolist() == [True, False]


@models("transformer")
def test_sides_of_other_lengths_are_refused(signatures):
    with pytest.raises(tf.errors.InvalidArgumentError, match="give as many targets as sources"):
        signatures.score(tf.constant(["a", "b"]), tf.constant(["a"]))


@rnn
def test_attention_has_a_distribution_for_each_target_token(signatures):
    found = signatures.attention(tf.constant(["Das Haus", "x"]), tf.constant(["дом", "жук щи дом"]))
    weights, source, target = (
        found[key].numpy() for key in ("attention", "source_tokens", "target_tokens")
    )
    assert weights.shape == (2, target.shape[1], source.shape[1])
    np.testing.assert_allclose(weights.sum(-1), target != b"", atol=1e-5)
    assert not weights[np.broadcast_to((source == b"")[:, np.newaxis], weights.shape)].any()
    assert (b"".join(source[0]).decode(), b"".join(target[1]).decode()) == (
        "▁Das▁Haus</s>",
        "▁жук▁щи▁дом</s>",
    )


@rnn
def test_attention_of_a_large_batch_is_that_of_each_pair(signatures):
    """Many long sources with short targets take several slices."""
    sources = ["Haus " * 900, "Das", "viel " * 400, ""] * 5
    targets = ["дом", "жук щи дом", "", "щи " * 20] * 5
    found = {
        key: x.numpy()
        for key, x in signatures.attention(tf.constant(sources), tf.constant(targets)).items()
    }
    for i in range(4):
        alone = signatures.attention(
            tf.constant(sources[i : i + 1]), tf.constant(targets[i : i + 1])
        )
        _, rows, columns = alone["attention"].shape
        for j in range(i, len(sources), 4):
            weights = found["attention"][j]
            np.testing.assert_allclose(
                weights[:rows, :columns], alone["attention"][0], rtol=1e-4, atol=1e-6
            )
            assert not weights[rows:].any() and not weights[:, columns:].any()
            for side, length in (("source_tokens", columns), ("target_tokens", rows)):
                assert found[side][j, :length].tolist() == alone[side].numpy()[0].tolist()
                assert not any(found[side][j, length:])


@rnn
def test_too_many_attention_weights_are_refused(signatures):
    """The first batch has 512 too many.

    The number of weights of the last does not fit into 32 bits.
    """
    long = ["Haus " * 900]
    short = ["Haus"]
    for sources, targets in (
        (["Haus " * 511, *short * 2048], [""] * 2049),
        *((long + short * others, long + short * others) for others in (40, 2200)),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match="attention has at most"):
            signatures.attention(tf.constant(sources), tf.constant(targets))


@rnn
def test_tokens_are_those_that_translation_reads_and_may_write(signatures, vocabularies):
    texts = ["", "Das Haus", "a " * 1500]
    found = {
        name: value.numpy().tolist()
        for name, value in signatures.tokens(tf.constant(texts)).items()
    }
    lengths = vocabularies.source.encode(tf.constant(texts)).row_lengths().numpy()
    assert found["source_tokens"] == [min(length, 1000) for length in lengths.tolist()]
    assert found["translation_tokens"] == [10] * 3  # the limit of these translations
    assert found["source_tokens"][::2] == [0, 1000]


@models("transformer")
def test_a_sentence_alone_is_translated_as_in_any_batch(signatures):
    """The words are the same. Costs differ by rounding, because batches sum in another order."""
    strings = strange_strings(60)
    together = signatures.serve(tf.constant(strings))
    for string, *expected in zip(
        strings, together["translations"].numpy(), together["scores"].numpy(), strict=True
    ):
        alone = signatures.serve(tf.constant([string]))
        assert alone["translations"].numpy()[0] == expected[0]
        np.testing.assert_allclose(alone["scores"].numpy()[0], expected[1], rtol=1e-5)


@pytest.mark.parametrize(
    "lengths", [[], [0], [3, 0, 3], [1] * 300, [TOKENS * 2, 1, TOKENS // 3, 5, TOKENS // 3] * 3]
)
def test_every_row_keeps_its_place_and_slices_keep_their_limits(lengths):
    """The function returns its rows, and the size of its slice in each."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def run(lengths):
        def function(numbers, rows):
            shape = tf.tile([[tf.size(rows), tf.reduce_max(rows)]], [tf.size(rows), 1])
            return tf.strings.as_string(numbers), tf.ensure_shape(shape, [None, 2])

        nothing = (tf.fill([0], ""), tf.zeros([0, 2], tf.int32))
        return in_slices(function, (tf.range(tf.size(lengths)), lengths), lengths, nothing)

    names, slices = run(tf.constant(lengths, tf.int32))
    assert names.numpy().tolist() == [str(i).encode() for i in range(len(lengths))]
    for sentences, longest in slices.numpy():
        assert sentences <= SENTENCES
        assert sentences == 1 or sentences * (longest + 1) <= TOKENS
    if lengths:
        assert np.sum(1 / slices.numpy()[:, 0]) <= 2 + len(lengths) / SENTENCES + len(lengths) / 2
