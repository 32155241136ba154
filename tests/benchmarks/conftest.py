import json

import pytest

WORDS = [f"w{number}" for number in range(20)]
OPTIONS = {"maxlen": 30, "batch_size": 2, "embedding_size": 4, "state_size": 3}


@pytest.fixture
def options(tmp_path):
    """Options of a training on 60 sentence pairs of 2 words, 30 of 9 and 10 of 20."""
    lines = [" ".join(WORDS[:length]) + "\n" for length in [2] * 60 + [9] * 30 + [20] * 10]
    (tmp_path / "text").write_text("".join(lines))
    (tmp_path / "words.json").write_text(
        json.dumps({word: i for i, word in enumerate(["<EOS>", "<UNK>", *WORDS])})
    )
    sides = ("source_dataset", "target_dataset", "valid_source_dataset", "valid_target_dataset")
    dictionaries = [str(tmp_path / "words.json")] * 2
    return {**dict.fromkeys(sides, str(tmp_path / "text")), "dictionaries": dictionaries, **OPTIONS}
