"""Vocabularies: strings to ids and back, and files that are refused."""

import io
import json

import pytest
import sentencepiece
import tensorflow as tf
from sentencepiece import sentencepiece_model_pb2

from nmt.errors import UserError
from nmt.text.sentencepiece_training import train_sentencepiece
from nmt.text.vocabulary import load_vocabulary


def encode(vocabulary, *lines):
    return vocabulary.encode(tf.constant(lines)).to_list()


def test_dictionary_encodes_words_and_unknown_ones(vocabulary):
    assert encode(vocabulary, "b a  x", "", "d", "a eos b") == [[3, 2, 1], [], [5], [2, 1, 3]]


def test_dictionary_decodes(vocabulary):
    ids = tf.ragged.constant([[3, 2, 1], [], [5]], dtype=tf.int32)
    assert [line.decode() for line in vocabulary.decode(ids).numpy()] == ["b a UNK", "", "d"]


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


def test_ids_without_a_word_are_unknown(dictionary):
    vocabulary = load_vocabulary(dictionary, size=8)
    assert (vocabulary.size, vocabulary.unknowns) == (8, (1, 6, 7))
    assert vocabulary.decode(tf.ragged.constant([[2, 7]])).numpy().tolist() == [b"a UNK"]


def test_sentencepiece_round_trip(tmp_path, write_lines):
    lines = [f"Größe {i}, so viel wie {i * i}." for i in range(100)]
    text = write_lines("text", lines)
    (tmp_path / "made.model").write_bytes(train_sentencepiece(text, 60))
    vocabulary = load_vocabulary(tmp_path / "made.model")
    assert vocabulary.size == 60
    ids = vocabulary.encode(tf.constant(lines))
    assert ids.flat_values.numpy().min() > 1
    assert [line.decode() for line in vocabulary.decode(ids).numpy()] == lines


@pytest.fixture
def model(write_lines):
    """Returns a function that trains a model with the special ids that it is given."""

    def model(**special):
        file = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            input=str(write_lines("text", [f"Preis {i * 37}, Größe {i}." for i in range(100)])),
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
        # The defaults of SentencePiece: unknown 0, beginning 1, end 2.
        (
            {},
            ["</s>", "<s>", "<unk>"],
        ),
        ({"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}, ["</s>", "<unk>", "<pad>"]),
        ({"bos_id": 0, "pad_id": 1, "eos_id": 2, "unk_id": 3}, ["</s>", "<s>", "<unk>", "<pad>"]),
        ({"eos_id": 0, "unk_id": 1, "bos_id": 2}, ["</s>", "<unk>", "<s>"]),
    ],
)
def test_other_ids_of_the_special_pieces_are_mapped(model, special, first, tmp_path):
    """The end comes first, the unknown word after the beginning, and a text reads as in
    SentencePiece.
    """
    content = model(**special)
    (tmp_path / "made.model").write_bytes(content)
    vocabulary = load_vocabulary(tmp_path / "made.model")
    tokens = [token.decode() for token in vocabulary.tokens(tf.range(vocabulary.size)).numpy()]
    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    others = [piece for i in range(60) if (piece := processor.id_to_piece(i)) not in first]
    assert tokens == [*first, *others]
    assert (vocabulary.unknown, vocabulary.unknowns) == (
        first.index("<unk>"),
        (first.index("<unk>"),),
    )
    line = "Größe 12, 日 im Jahr"
    (ids,) = encode(vocabulary, line)
    assert [tokens[i] for i in ids] == [processor.id_to_piece(i) for i in processor.encode(line)]
    assert vocabulary.decode(tf.ragged.constant([ids])).numpy()[0].decode() == processor.decode(
        processor.encode(line)
    )
    (drawn,) = vocabulary.sample([line.encode()], 0.0, [1], 100)  # no merge is skipped
    assert drawn.tolist() == ids
    # The name of the end is a word like others.
    units = " ".join([*(tokens[i] for i in ids), "</s>"])
    spaced = f" {units.replace(' ', '  ')} "  # more spaces are no units
    assert (
        vocabulary.ids_of_units(tf.constant([units, spaced])).to_list()
        == [[*ids, vocabulary.unknown]] * 2
    )


def test_a_model_without_an_end_is_refused(model, tmp_path):
    (tmp_path / "made.model").write_bytes(model(eos_id=-1))
    with pytest.raises(UserError, match="no end of sentence"):
        load_vocabulary(tmp_path / "made.model")


def test_a_model_of_control_symbols_alone_is_refused(model, tmp_path):
    """SentencePiece loads it, and fails at the first line."""
    proto = sentencepiece_model_pb2.ModelProto.FromString(model())
    for piece in proto.pieces:
        if piece.type == piece.NORMAL:
            piece.type = piece.CONTROL
    (tmp_path / "made.model").write_bytes(proto.SerializeToString())
    with pytest.raises(UserError, match="control symbols only"):
        load_vocabulary(tmp_path / "made.model")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.model", None, "there is no vocabulary"),
        ("a.txt", "", "must end in .model"),
        ("a.model", "no model", "is not a SentencePiece model"),
        ("a.json", "{", "is no dictionary in JSON"),
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
    with pytest.raises(UserError, match=r"unknown word at id 3, .* size 3"):
        load_vocabulary(tmp_path / "a.json", size=3)


def test_size_is_for_dictionaries_only(tmp_path, write_lines):
    (tmp_path / "a.model").write_bytes(train_sentencepiece(write_lines("text", ["abc", "cab"]), 8))
    with pytest.raises(UserError, match=r"for \.json dictionaries only"):
        load_vocabulary(tmp_path / "a.model", size=5)


def test_a_word_that_is_not_unicode_is_refused(tmp_path):
    (tmp_path / "a.json").write_text(r'{"eos": 0, "UNK": 1, "\ud800": 2}')
    with pytest.raises(UserError, match=r"is no dictionary in JSON: .*surrogates"):
        load_vocabulary(tmp_path / "a.json")
