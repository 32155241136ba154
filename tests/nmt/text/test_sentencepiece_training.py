"""Training of SentencePiece models."""

import pytest
import tensorflow as tf

from nmt.errors import UserError
from nmt.text.sentencepiece_training import changed_characters, train_sentencepiece
from nmt.text.vocabulary import load_vocabulary


def encode(vocabulary, *lines):
    return vocabulary.encode(tf.constant(lines)).to_list()


def test_a_vocabulary_of_a_sample_knows_only_its_lines(tmp_path, write_lines):
    """Every fourth line, from the first one on."""
    text = write_lines("text", [f"{letter * 3} {letter * 2}" for letter in "abcdefghijkl"])
    (tmp_path / "made.model").write_bytes(train_sentencepiece(text, 10, sample_lines=3))
    unknown = {
        letter
        for letter in "abcdefghijkl"
        if 1 in encode(load_vocabulary(tmp_path / "made.model"), letter)[0]
    }
    assert unknown == set("abcdefghijkl") - set("aei")


TEXT = [f"Preis {i * 37}, Größe {i}." for i in range(100)] + ["im Jahr 1999"] * 20 + ["ß ∂ ﬁn"]


@pytest.fixture
def make(tmp_path, write_lines):
    """Trains a vocabulary of `TEXT` with these options, and returns it."""

    def make(size=60, **options):
        (tmp_path / "made.model").write_bytes(
            train_sentencepiece(write_lines("text", TEXT), size, **options)
        )
        return load_vocabulary(tmp_path / "made.model")

    return make


def test_the_beginning_of_a_sentence_may_have_an_id_of_its_own(make):
    """No text has it: `<s>` is three characters there. It spells nothing."""
    vocabulary = make(begin_symbol=True)
    assert (vocabulary.unknown, vocabulary.unknowns, vocabulary.size) == (2, (2,), 60)
    assert vocabulary.tokens(tf.range(3)).numpy().tolist() == [b"</s>", b"<s>", b"<unk>"]
    ids = vocabulary.encode(["im Jahr <s> 日"]).to_list()[0]
    assert 1 not in ids
    assert 2 in ids
    assert (
        vocabulary.decode(
            tf.ragged.constant([[1, *vocabulary.encode(["im Jahr"]).to_list()[0]]])
        ).numpy()
        == b"im Jahr"
    )
    with pytest.raises(UserError, match="--user_symbols has <s>"):
        make(begin_symbol=True, user_symbols=["<s>"])


@pytest.mark.parametrize("line", ["日本 x", "a😀b", "∂"])
def test_with_bytes_for_units_no_character_is_unknown(make, line):
    vocabulary = make(340, byte_fallback=True)
    (ids,) = encode(vocabulary, line)
    assert 1 not in ids
    assert vocabulary.decode(tf.ragged.constant([ids])).numpy()[0].decode() == line
    assert 1 in encode(make(), line)[0] or line == "∂"


def test_rare_characters_are_unknown_at_a_lower_coverage(make):
    """The text has ∂ once, and some 1,500 characters."""
    assert 1 in encode(make(character_coverage=0.99), "∂")[0]
    assert 1 not in encode(make(character_coverage=1.0), "∂")[0]


def test_user_symbols_are_units(make):
    vocabulary = make(user_symbols=("<2de>", "Größe"))
    tokens = vocabulary.tokens(tf.constant(encode(vocabulary, "<2de>Größe 12")[0])).numpy()
    assert {b"<2de>", "Größe".encode()} <= set(tokens)


def test_each_digit_is_a_unit(make):
    def tokens(vocabulary):
        ids = tf.constant(encode(vocabulary, "1999")[0])
        return [token.decode() for token in vocabulary.tokens(ids).numpy() if token.decode() != "▁"]

    assert tokens(make(50, split_digits=True)) == ["1", "9", "9", "9"]
    assert len(tokens(make(120))) < 4


def test_a_rule_normalizes(make):
    for rule, wanted in (("nmt_nfkc", "fin"), ("nmt_nfkc_cf", "fin"), ("identity", "ﬁn")):
        vocabulary = make(normalization_rule=rule)
        assert (
            vocabulary.decode(vocabulary.encode(tf.constant(["ﬁn"]))).numpy()[0].decode() == wanted
        )
    folded = make(normalization_rule="nmt_nfkc_cf")
    assert encode(folded, "PREIS") == encode(folded, "preis")


def test_characters_that_a_rule_changes_are_counted(write_lines):
    """In the text, or in the lines of its sample."""
    path = write_lines("text", ["a² ½", "\u200c a²", "ﬁ"])
    assert changed_characters(path, "nmt_nfkc") == {"²": 2, "½": 1, "\u200c": 1, "ﬁ": 1}
    assert changed_characters(path, "nmt_nfkc", 1) == {"²": 1, "½": 1}
    assert changed_characters(path, "identity") == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"user_symbols": ["<a>", "<a>"]}, "--user_symbols has '<a>'; each must be given once"),
        ({"user_symbols": ["a b"]}, "--user_symbols has 'a b'; each must be"),
        ({"user_symbols": [""]}, "--user_symbols has ''; each must be"),
        (
            {"user_symbols": ["<0x41>"], "byte_fallback": True},
            "--user_symbols has <0x41>, which the vocabulary has",
        ),
        ({"user_symbols": ["</s>"]}, "--user_symbols has </s>, which the vocabulary has"),
        ({"byte_fallback": True}, r"give a --size of at least \d+$"),
    ],
)
def test_options_of_a_vocabulary_that_do_not_fit_are_refused(make, tmp_path, options, said):
    with pytest.raises(UserError, match=said):
        make(**options)
    assert not (tmp_path / "made.model").exists()


@pytest.mark.parametrize(
    ("lines", "size", "said"),
    [
        (["abc", "cab"], 500, r"the words yield only (\d+); give a --size of at most \1$"),
        (["abcdefghij"], 5, r"bytes \(if any\) and symbols need 13; .* at least 13$"),
        ([""], 5, "there are no words"),
        (["", " "], 5, "there are no words"),
    ],
)
def test_an_impossible_size_is_refused(write_lines, lines, size, said):
    with pytest.raises(UserError, match=said):
        train_sentencepiece(write_lines("text", lines), size)


def test_vocabularies_are_trained_on_strange_lines(tmp_path):
    """A byte order mark and NUL give no units; a line of a megabyte counts like any other."""
    (tmp_path / "text").write_bytes(b"\xef\xbb\xbfab\r\nb\0a\n" + b"q" * 10**6 + b"\n")
    (tmp_path / "a.model").write_bytes(train_sentencepiece(tmp_path / "text", 7))
    vocabulary = load_vocabulary(tmp_path / "a.model")
    assert encode(vocabulary, "q")[0][-1] > 1
    assert vocabulary.decode(vocabulary.encode(tf.constant(["abq"]))).numpy().tolist() == [b"abq"]
    pieces = vocabulary.decode(tf.ragged.constant([[i] for i in range(2, 7)])).numpy().tolist()
    assert not set(b"".join(pieces)) - set(b"abq ")
