import numpy as np
import pytest

from experiments.order_embeddings.data import CAPTIONS, LONGEST, read_corpus
from nmt.errors import UserError
from tests.experiments.order_embeddings.conftest import SIZES


def test_sizes_of_the_parts(folder):
    for part, size in zip(read_corpus(str(folder)), SIZES.values(), strict=True):
        assert part.images.shape[0] == size
        assert part.captions.shape == (size, len(CAPTIONS), LONGEST)


def test_an_image_is_the_tf_idf_vector_of_its_first_two_captions(folder):
    images = read_corpus(str(folder)).train.images.toarray()
    np.testing.assert_allclose((images**2).sum(1), 1, rtol=1e-5)
    # "a" and "and" are in every caption, so their weight is 0; the three things are left.
    assert ((images > 0).sum(1) == 3).all()


def test_words_of_a_caption_are_ids_with_the_padding_after_them(folder):
    (folder / "test_2016.3.en").write_text("a unheard-of a\n\n" + "a " * 50 + "\n" + "a\n" * 3)
    captions = read_corpus(str(folder)).test.captions[:, 0]
    a = captions[3, 0]
    assert captions[0].tolist() == [a, 1, 1, a] + [0] * (
        LONGEST - 4
    )  # two unknown words, split at the hyphen
    assert captions[1].tolist() == [1] + [0] * (LONGEST - 1)  # an empty caption
    assert captions[2].tolist() == [a] * LONGEST
    assert a > 1


def test_missing_files_and_lines_are_named(folder):
    (folder / "val.2.en").write_text("one line\n")
    with pytest.raises(UserError, match=r"val\.\*\.en have 8, 1, 8, 8, 8 lines"):
        read_corpus(str(folder))
    (folder / "val.2.en").unlink()
    with pytest.raises(UserError, match=r"lacks val\.2\.en; put"):
        read_corpus(str(folder))
