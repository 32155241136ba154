"""A corpus: text and training options, declared in a file of `corpora/`."""

import fnmatch
import gzip
import itertools
import json
import shutil
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nmt.errors import UserError
from nmt.storage.files import write_json
from nmt.text.parallel_text import ParallelText

from ..data_sets.files import find_files
from .baseline import Store, execute
from .condition import Condition

FOLDER = Path(__file__).parent / "corpora"
LOCAL = "wmt14"  # the declaration for a folder that has none of its own
_NEEDED = {
    "embedding_size",
    "state_size",
    "batch_size",
    "learning_rate",
    "finish_after",
}  # the report names them


@dataclass(frozen=True)
class Corpus:
    """Text, and the options of trainings on it."""

    name: str  # name of its folders
    title: str  # its name in the report
    languages: Sequence[str]  # file endings of source and target
    corpus: str | None  # its name in `nmt corpus`, or `None` for files in a folder
    train: str  # training text, without its ending
    valid: str  # validation text
    tests: dict[str, str]  # text of the test sets, by their names in the report
    vocabulary_size: int  # units on each side
    seeds: int  # the largest number of seeds of a condition
    options: dict[str, Any]  # options of `nmt train`
    # the grid of learning rates from which each condition takes the best. Without one, all
    # conditions have that of the options
    step_sizes: Sequence[float] = ()
    # patterns of the names of conditions that are not trained on this corpus, as in `fnmatch`,
    # unless a condition names the corpus
    without: Sequence[str] = ()
    minutes: float = 0  # of a training on two cores; 0 if that was not measured
    remarks: Sequence[str] = ()  # paragraphs for the beginning of the report
    # sentences of each test set, which weight means over them. By default all weigh the same
    sentences: dict[str, int] = field(default_factory=dict)
    origin: Path | None = None  # the folder of the files, if `corpus` is `None`

    def __post_init__(self):
        missing = _NEEDED - self.options.keys()
        if missing:
            raise ValueError(f"options lack {', '.join(sorted(missing))}")

    @property
    def model_type(self) -> str:
        return self.options.get("model_type", "rnn")

    @property
    def parts(self) -> list[str]:
        return list(dict.fromkeys((self.train, self.valid, *self.tests.values())))

    @property
    def names(self) -> list[str]:
        pairs = itertools.product(self.parts, self.languages)
        return [f"{part}.{language}" for part, language in pairs]

    def files(self, part: str, folder: Path) -> list[str]:
        """Returns the files of a part, source and target, in the folder that `prepare` fills."""
        return [str(folder / "text" / f"{part}.{language}") for language in self.languages]

    def training(self, folder: Path) -> dict[str, Any]:
        """Returns the options of a training on the text in a folder."""
        files = zip(
            ("source_dataset", "target_dataset"), self.files(self.train, folder), strict=True
        )
        valid = zip(
            ("valid_source_dataset", "valid_target_dataset"),
            self.files(self.valid, folder),
            strict=True,
        )
        dictionaries = [str(folder / "vocab" / f"{side}.model") for side in ("source", "target")]
        return {**dict(files), **dict(valid), "dictionaries": dictionaries, **self.options}

    def select(self, conditions: Sequence[Condition]) -> list[Condition]:
        """Returns the conditions that are trained on this corpus."""
        names = [each.name for each in conditions]
        left_out = set(itertools.chain(*(fnmatch.filter(names, each) for each in self.without)))
        return [
            each
            for each in conditions
            if self.name in each.corpora
            or not (each.corpora or each.model_type != self.model_type or each.name in left_out)
        ]


def read_corpus(data: str) -> Corpus:
    """Returns a corpus by its name or folder.

    Raises:
        UserError: The name or folder does not exist, the declaration is wrong, or a file is
            missing.
    """
    declared = FOLDER / f"{data}.json"
    origin = None
    if Path(data).name != data or not declared.is_file():
        origin = Path(data).resolve()
        if not (data and origin.name and origin.is_dir()):
            known = ", ".join(
                sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != LOCAL)
            )
            raise UserError(
                f"DATA={data} is not a folder and not one of {known}; give one of these, "
                "`planned` for the three of the first plan, or a folder of text"
            )
        own = FOLDER / f"{origin.name}.json"
        declared = own if own.is_file() else FOLDER / f"{LOCAL}.json"
    try:
        found = json.loads(declared.read_text(encoding="utf-8"))
        corpus = Corpus(name=origin.name if origin else data, origin=origin, **found)
    except (TypeError, ValueError) as error:
        raise UserError(
            f"{declared} is not the declaration of a corpus: {error}; compare it with the other "
            "files there"
        ) from None
    if not (origin or corpus.corpus):
        raise UserError(
            f"this project does not have the text of {data}; give its folder: DATA=/path/to/{data}"
        )
    if origin:
        find_files(origin, corpus.names)
    return corpus


def prepare(corpus: Corpus, store: Store) -> None:
    """Puts text and vocabularies into place, unless they are there already.

    Raises:
        UserError: A text cannot be used, or another one is in place.
    """
    text = store.work / "text"
    vocabularies = store.work / "vocab"
    done = text / "done"
    origin = str(corpus.origin or corpus.corpus)
    wanted = {"origin": origin, "files": corpus.names, "vocabulary_size": corpus.vocabulary_size}
    if done.exists():
        store.require_same(done, json.loads(done.read_text(encoding="utf-8")), wanted)
    else:
        if corpus.origin:
            _copy(corpus, store)
        else:
            execute(store, "-m", "nmt", "corpus", corpus.corpus, "--to", str(text))
        write_json(done, wanted)
    if not (vocabularies / "target.model").exists():
        source, target = corpus.files(corpus.train, store.work)
        given = [
            "--source_dataset",
            source,
            "--target_dataset",
            target,
            "--size",
            str(corpus.vocabulary_size),
        ]
        if corpus.options.get("tie_encoder_decoder_embeddings"):
            given.append("--joint")  # one embedding needs one vocabulary
        execute(store, "-m", "nmt", "vocab", *given, "--to", str(vocabularies))


def _copy(corpus: Corpus, store: Store) -> None:
    """Copies the files of a corpus from its origin, and decompresses them."""
    text = store.work / "text"
    text.mkdir(parents=True, exist_ok=True)
    for name, path in zip(corpus.names, find_files(corpus.origin, corpus.names), strict=True):
        opener = gzip.open if path.suffix == ".gz" else open
        try:
            with opener(path, "rb") as origin, (text / name).open("wb") as copy:
                shutil.copyfileobj(origin, copy)
        except (OSError, EOFError, zlib.error) as error:
            raise UserError(f"{path} cannot be copied to {text}: {error}") from None
    for part in corpus.parts:
        pairs = ParallelText(*corpus.files(part, store.work))
        if not sum(1 for _ in pairs):  # reads all, so a damaged text is refused too
            raise pairs.empty()
