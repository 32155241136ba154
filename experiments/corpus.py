"""A corpus: the text that rows are trained on, as a file of `corpora/` declares it."""

import gzip
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.errors import UserError

from .baseline import execute
from .place import Place

FOLDER = Path(__file__).parent / "corpora"
LOCAL = "wmt14"  # whose declaration holds for a folder of the user's


@dataclass(frozen=True)
class Corpus:
    """What is trained on, and how.

    Args:
        name: Of its folders.
        title: As the report shows it.
        languages: Source and target: the endings of the files.
        corpus: What `nmt corpus` knows it by, or `None` for files that are there.
        train: Training text, without its ending.
        valid: Validation text.
        tests: Names of the test sets in the report, and their text.
        vocabulary_size: Units on each side.
        seeds: The most seeds that a row is trained with.
        options: Of `nmt train`.
        origin: The folder of the files that are there.
    """

    name: str
    title: str
    languages: tuple[str, str]
    corpus: str | None
    train: str
    valid: str
    tests: dict[str, str]
    vocabulary_size: int
    seeds: int
    options: dict[str, Any]
    origin: Path | None = None

    def files(self, part: str, folder: Path) -> list[str]:
        """Returns the files of a part, source and target, in the folder that `prepare` fills."""
        return [str(folder / "text" / f"{part}.{language}") for language in self.languages]

    def training(self, folder: Path) -> dict[str, Any]:
        """Returns the options of a training on the text in a folder."""
        files = zip(("source_dataset", "target_dataset"), self.files(self.train, folder), strict=True)
        valid = zip(("valid_source_dataset", "valid_target_dataset"), self.files(self.valid, folder), strict=True)
        dictionaries = [str(folder / "vocab" / f"{side}.model") for side in ("source", "target")]
        return {**dict(files), **dict(valid), "dictionaries": dictionaries, **self.options}


def read_corpus(data: str) -> Corpus:
    """Returns the corpus of that name, or the one that lies in that folder.

    Raises:
        UserError: There is neither.
    """
    declared = FOLDER / f"{data}.json"
    origin = None
    if not declared.is_file():
        origin, declared = Path(data).resolve(), FOLDER / f"{LOCAL}.json"
        if not origin.is_dir():
            known = ", ".join(sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != LOCAL))
            raise UserError(f"DATA={data} is no folder and none of {known}; give one of these, or a folder of text")
    found = json.loads(declared.read_text(encoding="utf-8"))
    if found["corpus"] is None and origin is None:
        raise UserError(f"the text of {data} does not come with this project; give its folder: DATA=/path/to/{data}")
    name = origin.name if origin else data
    return Corpus(name=name, origin=origin, **{**found, "languages": tuple(found["languages"])})


def prepare(corpus: Corpus, place: Place) -> None:
    """Puts text and vocabularies into place, where they are not there yet.

    Raises:
        UserError: A file of the user's is missing.
    """
    text, vocabularies = place.work / "text", place.work / "vocab"
    if not (text / "done").exists():
        if corpus.origin:
            _copy(corpus, text)
        else:
            execute(place, "-m", "nmt", "corpus", corpus.corpus, "--to", str(text))
        (text / "done").touch()
    if not (vocabularies / "target.model").exists():
        source, target = corpus.files(corpus.train, place.work)
        given = ["--source_dataset", source, "--target_dataset", target, "--size", str(corpus.vocabulary_size)]
        execute(place, "-m", "nmt", "vocab", *given, "--to", str(vocabularies))


def _copy(corpus: Corpus, text: Path) -> None:
    """Copies the files of a corpus from where they are, compressed or not."""
    parts = (corpus.train, corpus.valid, *corpus.tests.values())
    names = [f"{part}.{language}" for part in parts for language in corpus.languages]
    missing = [name for name in names if not any((corpus.origin / f"{name}{end}").is_file() for end in ("", ".gz"))]
    if missing:
        raise UserError(f"{corpus.origin} lacks {', '.join(missing)}, as they are or with .gz; put them there")
    text.mkdir(parents=True, exist_ok=True)
    for name in names:
        plain = corpus.origin / name
        opener, path = (open, plain) if plain.is_file() else (gzip.open, f"{plain}.gz")
        with opener(path, "rb") as origin, (text / name).open("wb") as copy:
            shutil.copyfileobj(origin, copy)
