"""Vocabularies: strings to ids and back, and files that are refused."""

import io
import json

import pytest
import sentencepiece
import tensorflow as tf

from nmt.errors import UserError
from nmt.text.vocabulary import load_vocabulary, train_sentencepiece


def encode(vocabulary, *lines):
    return vocabulary.encode(tf.constant(lines)).to_list()


def test_dictionary_encodes_words_and_unknown_ones(vocabulary):
    assert encode(vocabulary, "b a  x", "", "d") == [[3, 2, 1], [], [5]]


def test_the_word_eos_in_a_text_is_unknown(vocabulary):
    assert encode(vocabulary, "a eos b") == [[2, 1, 3]]


def test_dictionary_decodes(vocabulary):
    ids = tf.ragged.constant([[3, 2, 1], [], [5]], dtype=tf.int32)
    assert [line.decode() for line in vocabulary.decode(ids).numpy()] == ["b a UNK", "", "d"]


def test_dictionaries_of_later_nematus_versions(tmp_path):
    path = tmp_path / "later.json"
    path.write_text(json.dumps({"<EOS>": 0, "<GO>": 1, "<UNK>": 2, "word": 3}))
    assert encode(load_vocabulary(path), "word other") == [[3, 2]]


def test_the_special_words_of_a_dictionary_are_those_of_its_version(tmp_path):
    """A text may have the words `UNK` and `eos`."""
    path = tmp_path / "vocab.json"
    path.write_text(json.dumps({"<EOS>": 0, "<GO>": 1, "<UNK>": 2, "UNK": 3, "eos": 4}))
    vocabulary = load_vocabulary(path)
    assert vocabulary.unknown == 2
    assert vocabulary.encode(tf.constant(["UNK eos other <UNK>"])).to_list() == [[3, 4, 2, 2]]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ({"UNK": 1, "a": 2, "eos": 3}, [3, 1, 2]),
        ({"eos": 0, "UNK": 2, "a": 3}, [1, 2, 3]),
        ({"UNK": 2, "eos": 3}, [3, 2, 1]),
    ],
)
def test_a_word_that_is_named_like_a_special_one_has_its_own_id_in_v03(tmp_path, ids, expected):
    """Then no word has id 0 or 1, which stay those of the end and of the unknown word."""
    path = tmp_path / "vocab.json"
    path.write_text(json.dumps(ids))
    vocabulary = load_vocabulary(path)
    assert (vocabulary.unknown, vocabulary.size) == (1, max(ids.values()) + 1)
    assert vocabulary.encode(tf.constant(["eos UNK a"])).to_list() == [expected]
    assert vocabulary.tokens(tf.constant([0, 1])).numpy().tolist() == [b"eos", b"UNK"]


def test_words_beyond_the_size_are_unknown(dictionary):
    vocabulary = load_vocabulary(dictionary, size=4)
    assert vocabulary.size == 4
    assert encode(vocabulary, "a b c d") == [[2, 3, 1, 1]]


def test_sentencepiece_round_trip(tmp_path, write_lines):
    lines = [f"Größe {i}, so viel wie {i * i}." for i in range(100)]
    text = write_lines("text", lines)
    (tmp_path / "made.model").write_bytes(train_sentencepiece(text, 60))
    vocabulary = load_vocabulary(tmp_path / "made.model")
    assert vocabulary.size == 60
    ids = vocabulary.encode(tf.constant(lines))
    assert ids.flat_values.numpy().min() > 1
    assert [line.decode() for line in vocabulary.decode(ids).numpy()] == lines


def test_a_vocabulary_of_a_sample_knows_only_its_lines(tmp_path, write_lines):
    """Every fourth line, from the first one on."""
    text = write_lines("text", [f"{letter * 3} {letter * 2}" for letter in "abcdefghijkl"])
    (tmp_path / "made.model").write_bytes(train_sentencepiece(text, 10, sample_lines=3))
    unknown = {letter for letter in "abcdefghijkl" if 1 in encode(load_vocabulary(tmp_path / "made.model"), letter)[0]}
    assert unknown == set("abcdefghijkl") - set("aei")


def test_a_unigram_model_is_of_the_size_asked_for(tmp_path, write_lines):
    text = write_lines("text", [f"so viel wie {i * i}." for i in range(100)])
    (tmp_path / "made.model").write_bytes(train_sentencepiece(text, 40, kind="unigram"))
    assert load_vocabulary(tmp_path / "made.model").size == 40


TEXT = [f"Preis {i * 37}, Größe {i}." for i in range(100)] + ["im Jahr 1999"] * 20 + ["ß ∂ ﬁn"]


@pytest.fixture
def make(tmp_path, write_lines):
    """Trains a vocabulary of `TEXT` with these options, and returns it."""

    def make(size=60, **options):
        (tmp_path / "made.model").write_bytes(train_sentencepiece(write_lines("text", TEXT), size, **options))
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
        vocabulary.decode(tf.ragged.constant([[1, *vocabulary.encode(["im Jahr"]).to_list()[0]]])).numpy() == b"im Jahr"
    )
    with pytest.raises(UserError, match="--user_symbols has <s>, which the vocabulary has anyway"):
        make(begin_symbol=True, user_symbols=["<s>"])


@pytest.fixture
def model(write_lines):
    """Returns a function that trains a model of `TEXT` with the special ids that it is given."""

    def model(**special):
        file = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            input=str(write_lines("text", TEXT)),
            model_writer=file,
            vocab_size=60,
            model_type="bpe",
            minloglevel=2,
            **special,
        )
        return file.getvalue()

    return model


@pytest.mark.parametrize(
    ("special", "first"),
    [
        ({}, ["</s>", "<s>", "<unk>"]),  # the defaults of SentencePiece: unknown 0, beginning 1, end 2
        ({"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}, ["</s>", "<unk>", "<pad>"]),
        ({"bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3}, ["</s>", "<s>", "<unk>", "<pad>"]),
        ({"eos_id": 0, "unk_id": 1, "bos_id": 2}, ["</s>", "<unk>", "<s>"]),
    ],
)
def test_other_ids_of_the_special_pieces_are_mapped(model, special, first, tmp_path):
    """The end comes first, the unknown word after the beginning, and a text reads as in SentencePiece."""
    (tmp_path / "made.model").write_bytes(content := model(**special))
    vocabulary = load_vocabulary(tmp_path / "made.model")
    tokens = [token.decode() for token in vocabulary.tokens(tf.range(vocabulary.size)).numpy()]
    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    others = [piece for i in range(60) if (piece := processor.id_to_piece(i)) not in first]
    assert tokens == [*first, *others]
    assert (vocabulary.unknown, vocabulary.unknowns) == (first.index("<unk>"), (first.index("<unk>"),))
    line = "Größe 12, 日 im Jahr"
    (ids,) = encode(vocabulary, line)
    assert [tokens[i] for i in ids] == [processor.id_to_piece(i) for i in processor.encode(line)]
    assert vocabulary.decode(tf.ragged.constant([ids])).numpy()[0].decode() == processor.decode(processor.encode(line))
    (drawn,) = vocabulary.sample([line.encode()], 0.0, [1], 100)  # no merge is skipped
    assert drawn.tolist() == ids


def test_a_model_without_an_end_is_refused(model, tmp_path):
    (tmp_path / "made.model").write_bytes(model(eos_id=-1))
    with pytest.raises(UserError, match="no end of sentence"):
        load_vocabulary(tmp_path / "made.model")


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
        assert vocabulary.decode(vocabulary.encode(tf.constant(["ﬁn"]))).numpy()[0].decode() == wanted
    folded = make(normalization_rule="nmt_nfkc_cf")
    assert encode(folded, "PREIS") == encode(folded, "preis")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"user_symbols": ["<a>", "<a>"]}, "--user_symbols has '<a>'; each must be given once and have no white space"),
        ({"user_symbols": ["a b"]}, "--user_symbols has 'a b'; each must be"),
        ({"user_symbols": [""]}, "--user_symbols has ''; each must be"),
        ({"user_symbols": ["<0x41>"], "byte_fallback": True}, "--user_symbols has <0x41>, which the vocabulary has"),
        ({"user_symbols": ["</s>"]}, "--user_symbols has </s>, which the vocabulary has anyway; leave it out"),
        ({"byte_fallback": True}, r"give a --size of at least \d+$"),
    ],
)
def test_options_of_a_vocabulary_that_do_not_fit_are_refused(make, tmp_path, options, said):
    with pytest.raises(UserError, match=said):
        make(**options)
    assert not (tmp_path / "made.model").exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.model", None, "there is no vocabulary"),
        ("a.txt", "", "must end in .model"),
        ("a.model", "no model", "is not a SentencePiece model"),
        ("a.json", "{", "is not JSON"),
        ("a.json", '{"eos": 0, "UNK": 1, "word": 3}', "each once"),
        ("a.json", '{"<EOS>": 0, "<UNK>": 2}', "each once"),
        ("a.json", "[]", "each once"),
        ("a.json", "7", "each once"),
        ("a.json", '{"eos": 0, "UNK": "1"}', "each once"),
        ("a.json", '{"eos": 0, "UNK": [1]}', "each once"),
        ("a.json", '{"UNK": 0, "eos": 1}', "must map eos"),
        ("a.json", '{"eos": 0, "word": 1}', "have an entry UNK"),
    ],
)
def test_bad_vocabulary_files_are_refused(tmp_path, name, content, said):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=said):
        load_vocabulary(tmp_path / name)


def test_a_size_without_the_unknown_word_is_refused(tmp_path):
    (tmp_path / "a.json").write_text('{"eos": 0, "a": 1, "b": 2, "UNK": 3}')
    assert load_vocabulary(tmp_path / "a.json", size=4).size == 4
    with pytest.raises(UserError, match="its unknown word at id 3, outside a vocabulary of size 3; give a larger size"):
        load_vocabulary(tmp_path / "a.json", size=3)


def test_size_is_for_dictionaries_only(tmp_path, write_lines):
    (tmp_path / "a.model").write_bytes(train_sentencepiece(write_lines("text", ["abc", "cab"]), 8))
    with pytest.raises(UserError, match=r"for \.json dictionaries only"):
        load_vocabulary(tmp_path / "a.model", size=5)


@pytest.mark.parametrize(
    ("lines", "size", "said"),
    [
        (["abc", "cab"], 500, r"the words yield only (\d+); give a --size of at most \1$"),
        (["abcdefghij"], 5, r"bytes \(if any\) and symbols need 13; give a --size of at least 13$"),
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


def test_a_text_that_is_not_utf8_is_refused_by_line(tmp_path):
    (tmp_path / "text").write_bytes(b"ab\nsch\xf6n\n")
    with pytest.raises(UserError, match="text, line 2 is not UTF-8"):
        train_sentencepiece(tmp_path / "text", 7)


def test_a_word_that_is_not_unicode_is_refused(tmp_path):
    (tmp_path / "a.json").write_text(r'{"eos": 0, "UNK": 1, "\ud800": 2}')
    with pytest.raises(UserError, match="has a word that is not valid Unicode"):
        load_vocabulary(tmp_path / "a.json")
