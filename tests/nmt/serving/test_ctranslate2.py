"""Models of CTranslate2 compute what ours compute."""

import itertools
import random

import numpy as np
import pytest
import tensorflow as tf

from nmt.config import Config
from nmt.decoding.options import DecodingOptions
from nmt.decoding.scoring import Scorer
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.model.transformer import Transformer
from nmt.serving.ctranslate2_model import save_ctranslate2
from nmt.serving.service.loaded_model import load_export
from nmt.serving.signatures import Signatures
from nmt.text.batches import LONGEST
from nmt.text.vocabulary import END
from tests.nmt.outcomes import best, refused
from tests.nmt.serving.exports import SOURCE, TARGET, make_model

pytestmark = pytest.mark.slow

PAIRS = [tuple(map(str.encode, pair)) for pair in itertools.product(SOURCE, TARGET[:4])]


@pytest.fixture
def ctranslate2():
    return pytest.importorskip("ctranslate2", reason="needs the extra `ctranslate2`")


TABLES = ("decoder/embedding/", "decoder/output_")
MARIAN = {
    "transformer_activation": "swish",
    "transformer_attention_bias": True,
    "transformer_output_bias": True,
    "transformer_positions": "paper",
    "transformer_padding": 1,
}
OTHERS = MARIAN | {
    "transformer_activation": "gelu_tanh",
    "transformer_positions": "tensor2tensor",
    "transformer_norm_epsilon": 0.1,
    "transformer_padding": 3,
}


def make_transformer(kind, position, vocabularies, **options):
    """Makes a model with random weights, those of its norms included, and other depths on both
    sides."""
    config = Config(
        state_size=16,
        layer_normalization_type=kind,
        transformer_ffn_hidden_size=24,
        transformer_num_heads=4,
        transformer_norm_position=position,
        transformer_enc_depth=2,
        transformer_dec_depth=3,
        **options,
    )
    model = Transformer(config, *(vocabulary.size for vocabulary in vocabularies))
    rng = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(weight + rng.normal(0.0, 0.5, size=weight.shape))
    for weight in model.weights:  # padding that counts for nothing
        if config.transformer_padding and weight.path.startswith(TABLES):
            rows = weight.numpy()
            rows[-config.transformer_padding :] = 0 if rows.ndim == 2 else -100
            weight.assign(rows)
    return model


def save(model, vocabularies, to, compute_type=None):
    return save_ctranslate2(model, vocabularies, to, DecodingOptions(), {}, to, compute_type)


@pytest.fixture(scope="module")
def both(vocabularies, vocabulary_folder, tmp_path_factory):
    """The signatures of a model, and a folder of models with its export for CTranslate2."""
    pytest.importorskip("ctranslate2", reason="needs the extra `ctranslate2`")
    models = tmp_path_factory.mktemp("served") / "models"
    random.seed(0)
    model = make_transformer("layernorm", "pre", vocabularies, transformer_output_bias=True)
    (bias,) = [weight for weight in model.weights if weight.path.endswith("output_bias")]
    ends = np.eye(vocabularies.target.size)[END]  # at a limit, CTranslate2 adds no cost of the end
    bias.assign(bias + 8 * ends)
    options = DecodingOptions(beam_size=3, normalization_alpha=0.7)
    card = {"name": "test"}
    folder = models / "toy" / "1"
    assert save_ctranslate2(model, vocabularies, folder, options, card, vocabulary_folder)
    translator = Translator(vocabularies, model, options)
    return Signatures(vocabularies, model, translator), models


@pytest.mark.parametrize("name", ["serving_default", "n_best", "with_prefix", "score", "tokens"])
def test_signatures_are_those_of_a_savedmodel(both, name):
    """Scores are equal; CTranslate2's search may find other translations of some lines."""
    signatures, models = both
    function = signatures.functions[name]
    lines = [*SOURCE, "", "Haus " * (LONGEST + 1)]
    others = [*TARGET[: len(SOURCE)], "", "дом"]
    given = {spec.name: others for spec in function.input_signature} | {"sources": lines}
    served = load_export(models / "toy" / "1").signatures[name]
    assert (set(served.inputs), served.joinable) == (set(given), True)
    expected = function(**{each: tf.constant(texts) for each, texts in given.items()})
    as_bytes = {key: list(map(str.encode, texts)) for key, texts in given.items()}
    found = served.run({key: np.array(texts, object) for key, texts in as_bytes.items()})
    assert set(found) == set(expected) == set(served.outputs)
    for key, values in expected.items():
        assert found[key].shape == values.shape
        if name in ("score", "tokens") or key in ("source_cut", "counts"):
            np.testing.assert_allclose(found[key], values, rtol=1e-3)
    nothing = served.run({each: np.zeros(0, object) for each in given})
    assert {key: len(each) for key, each in nothing.items()} == dict.fromkeys(expected, 0)
    if name == "with_prefix":  # CTranslate2 scores only what follows
        found = [text.decode() for text in found["translations"]]
        assert all(map(str.startswith, found, [text[:4] for text in others]))
    if name not in ("serving_default", "n_best"):
        return
    same = found["translations"] == expected["translations"].numpy()
    assert np.mean(same) >= 0.4
    np.testing.assert_allclose(found["scores"][same], expected["scores"][same], rtol=1e-3)
    assert (found["translation_cut"] == expected["translation_cut"].numpy())[same].all()


def test_the_service_serves_it_in_int8(both, start_service):
    signatures, models = both
    service = start_service(models, "--compute_type", "int8")
    status, answer = service.predict({"inputs": SOURCE})
    expected = signatures.serve(tf.constant(SOURCE))["translations"].numpy()
    assert (status, len(answer["outputs"]["translations"])) == (200, len(expected))
    (shown,) = service.get("/v1/models")[1]["models"]
    assert (shown["card"], "attention" in shown["signatures"]) == ({"name": "test"}, False)
    _, found = service.get("/v1/models/toy/metadata")
    metadata = found["metadata"]["signature_def"]["signature_def"]["n_best"]
    assert metadata["outputs"]["scores"]["tensor_shape"]["dim"][1]["size"] == "3"
    status, answer = service.predict({"inputs": ["a " * 1500]})
    assert (status, "--tokens" in answer["error"]) == (400, True)


def test_an_unknown_type_is_refused(both, run):
    assert "Invalid compute type: int9" in refused(
        run("serve", both[1], "--port", 0, "--compute_type", "int9")
    )


def pieces(vocabulary, line):
    return [token.decode() for token in vocabulary.tokens(vocabulary.encode([line])[0]).numpy()]


@pytest.mark.parametrize(
    ("position", "parts"),
    [("pre", {}), ("post", {}), ("post", MARIAN), ("post", OTHERS)],
    ids=["pre", "post", "marian", "others"],
)
def test_costs_and_translations_are_ours(
    kind, position, parts, vocabularies, tmp_path, ctranslate2
):
    model = make_transformer(kind, position, vocabularies, **parts)
    if kind not in ("layernorm", "rmsnorm"):
        with pytest.raises(UserError, match="normalizes in another way"):
            save(model, vocabularies, tmp_path / "model")
        return
    assert not save(model, vocabularies, tmp_path / "model")  # there are no SentencePiece files
    engine = ctranslate2.Translator(str(tmp_path / "model"), compute_type="float32")

    sources, targets = zip(*PAIRS, strict=True)
    found = engine.score_batch(
        [pieces(vocabularies.source, line) for line in sources],
        [pieces(vocabularies.target, line) for line in targets],
    )
    costs = [-sum(each.log_probs) for each in found]
    np.testing.assert_allclose(
        costs,
        Scorer(vocabularies, model, DecodingOptions(normalization_alpha=0.0)).scores_of(PAIRS),
        rtol=1e-4,
    )

    lines = [line.encode() for line in SOURCE]
    translator = Translator(
        vocabularies, model, DecodingOptions(beam_size=1, translation_maxlen=12)
    )
    sources = [pieces(vocabularies[0], line) for line in lines]
    theirs = engine.translate_batch(
        sources, beam_size=1, max_decoding_length=12, min_decoding_length=0
    )
    words = ["".join(each.hypotheses[0]).replace("▁", " ").strip() for each in theirs]
    assert words == best(translator, lines)


def test_weights_are_written_in_int8(vocabularies, tmp_path, ctranslate2):
    model = make_transformer("layernorm", "pre", vocabularies)
    for name, compute_type in (("whole", None), ("small", "int8")):
        save(model, vocabularies, tmp_path / name, compute_type)
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("whole", "small")]
    # The positions stay float32.
    assert sizes[0] - sizes[1] > 2 * sum(w.numpy().size for w in model.weights if w.ndim == 2)
    engine = ctranslate2.Translator(str(tmp_path / "small"))
    assert engine.compute_type.startswith("int8")


def test_a_type_is_that_of_ctranslate2(run, tmp_path):
    words = ("export", "-m", tmp_path, "--to", tmp_path / "to", "--compute_type", "int8")
    status, _, said = run(*words)
    assert (status, "--format ctranslate2" in said) == (2, True)


def test_an_rnn_is_refused(vocabularies, tmp_path):
    with pytest.raises(UserError, match="CTranslate2 runs one Transformer"):
        save(make_model(vocabularies, "layernorm"), vocabularies, tmp_path / "model")
