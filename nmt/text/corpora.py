"""Parallel corpora, English and German: one made up here, one downloaded.

Each is written as `train`, `dev` and `test`, in files ending in `.en` and `.de`: raw text, one sentence a line.
"""

import gzip
import random
from collections.abc import Callable, Iterable
from pathlib import Path

import keras

from ..errors import UserError
from ..storage.files import atomic_write

Pair = tuple[str, str]  # English, German

# ---- The demo corpus: spelled-out numbers, dates, clock times and amounts of money ----

_DEMO_SIZES = {"train": 8000, "dev": 200, "test": 200}
_DEMO_SEED = 1910

_UNITS = [
    ("zero", "null"), ("one", "eins"), ("two", "zwei"), ("three", "drei"), ("four", "vier"),
    ("five", "fünf"), ("six", "sechs"), ("seven", "sieben"), ("eight", "acht"), ("nine", "neun"),
    ("ten", "zehn"), ("eleven", "elf"), ("twelve", "zwölf"), ("thirteen", "dreizehn"), ("fourteen", "vierzehn"),
    ("fifteen", "fünfzehn"), ("sixteen", "sechzehn"), ("seventeen", "siebzehn"), ("eighteen", "achtzehn"),
    ("nineteen", "neunzehn"),
]  # fmt: skip
_TENS = [
    ("twenty", "zwanzig"), ("thirty", "dreißig"), ("forty", "vierzig"), ("fifty", "fünfzig"),
    ("sixty", "sechzig"), ("seventy", "siebzig"), ("eighty", "achtzig"), ("ninety", "neunzig"),
]  # fmt: skip
_ENGLISH_ORDINALS = {
    "one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
    "twelve": "twelfth", "twenty": "twentieth", "thirty": "thirtieth",
}  # fmt: skip
_GERMAN_ORDINALS = {"eins": "ersten", "drei": "dritten", "sieben": "siebten", "acht": "achten"}
_WEEKDAYS = [
    ("Monday", "Montag"), ("Tuesday", "Dienstag"), ("Wednesday", "Mittwoch"), ("Thursday", "Donnerstag"),
    ("Friday", "Freitag"), ("Saturday", "Samstag"), ("Sunday", "Sonntag"),
]  # fmt: skip
_MONTHS = [
    ("January", "Januar"), ("February", "Februar"), ("March", "März"), ("April", "April"), ("May", "Mai"),
    ("June", "Juni"), ("July", "Juli"), ("August", "August"), ("September", "September"), ("October", "Oktober"),
    ("November", "November"), ("December", "Dezember"),
]  # fmt: skip
# Subject and verb; the German verb may have a part that goes to the end of the sentence.
_EVENTS = [
    (("the train", "leaves"), ("der Zug", "fährt", " ab")),
    (("the plane", "arrives"), ("das Flugzeug", "kommt", " an")),
    (("the concert", "begins"), ("das Konzert", "fängt", " an")),
    (("the meeting", "ends"), ("die Sitzung", "endet", "")),
    (("the shop", "opens"), ("das Geschäft", "macht", " auf")),
    (("the exhibition", "closes"), ("die Ausstellung", "schließt", "")),
]
_COUNTS = [
    ("the book has", "pages", "das Buch hat", "Seiten"),
    ("the village has", "inhabitants", "das Dorf hat", "Einwohner"),
    ("the theatre has", "seats", "das Theater hat", "Plätze"),
]
_COLOURS = [("red", "rote"), ("green", "grüne"), ("blue", "blaue"), ("black", "schwarze"), ("new", "neue")]
_GOODS = [("hat", "der", "Hut"), ("bag", "die", "Tasche"), ("book", "das", "Buch"), ("table", "der", "Tisch"),
          ("lamp", "die", "Lampe"), ("bicycle", "das", "Fahrrad")]  # fmt: skip


def _number(n: int) -> Pair:
    """Spells 0 <= n < 10,000; the German one ends in `eins` where it ends in one."""
    if n < 20:
        return _UNITS[n]
    if n < 100:
        tens, unit = _TENS[n // 10 - 2], _UNITS[n % 10]
        if n % 10 == 0:
            return tens
        return f"{tens[0]}-{unit[0]}", f"{unit[1].removesuffix('s') if n % 10 == 1 else unit[1]}und{tens[1]}"
    size, word = (1000, ("thousand", "tausend")) if n >= 1000 else (100, ("hundred", "hundert"))
    many, rest = _number(n // size), n % size
    english, german = f"{many[0]} {word[0]}", f"{'ein' if n // size == 1 else many[1]}{word[1]}"
    if rest == 0:
        return english, german
    remainder = _number(rest)
    return f"{english}{' and ' if rest < 100 else ' '}{remainder[0]}", german + remainder[1]


def _ordinal(n: int) -> Pair:
    """Spells 1st to 31st, the German one in the dative."""
    english, german = _number(n)
    head, hyphen, tail = english.rpartition("-")
    english = head + hyphen + _ENGLISH_ORDINALS.get(tail, f"{tail}th")
    if n < 20:
        return english, _GERMAN_ORDINALS.get(german, f"{german}ten")
    return english, f"{german}sten"


def _date(random_: random.Random) -> Pair:
    month = random_.randrange(12)
    day = _ordinal(random_.randint(1, 28))
    year = random_.randint(1901, 1999)
    english, german = f"the {day[0]} of {_MONTHS[month][0]}", f"dem {day[1]} {_MONTHS[month][1]}"
    if random_.random() < 0.5:
        english += f", {_number(year // 100)[0]} {_year_end(year % 100)}"
        german += f" neunzehnhundert{_number(year % 100)[1]}"
    if random_.random() < 0.5:
        weekday = random_.choice(_WEEKDAYS)
        return f"on {weekday[0]}, {english}", f"am {weekday[1]}, {german}"
    return f"on {english}", f"am {german.removeprefix('dem ')}"


def _year_end(n: int) -> str:
    return f"oh {_number(n)[0]}" if n < 10 else _number(n)[0]


def _time(random_: random.Random) -> Pair:
    hour, after = random_.randint(1, 12), random_.choice([0, 5, 10, 15, 20, 30, 40, 45, 50, 55])
    this, coming = _number(hour), _number(hour % 12 + 1)
    if after == 0:
        return f"at {this[0]} o'clock", f"um {'ein' if hour == 1 else this[1]} Uhr"
    if after == 30:
        return f"at half past {this[0]}", f"um halb {coming[1]}"
    minutes = min(after, 60 - after)
    english, german = ("a quarter", "Viertel") if minutes == 15 else _number(minutes)
    if after < 30:
        return f"at {english} past {this[0]}", f"um {german} nach {this[1]}"
    return f"at {english} to {coming[0]}", f"um {german} vor {coming[1]}"


def _many(random_: random.Random) -> Pair:
    """Spells a number above one that does not end in one, which German would inflect before a noun."""
    n = random_.choice([random_.randint(2, 99), random_.randint(100, 9999)])
    return _number(n + 1 if n % 100 == 1 else n)


def _money(random_: random.Random) -> Pair:
    english, german = _many(random_)
    english, german = f"{english} euros", f"{german} Euro"
    if random_.random() < 0.5:
        cents = _number(random_.randint(2, 99))
        english, german = f"{english} and {cents[0]} cents", f"{german} {cents[1]}"
    return english, german


def _event(random_: random.Random) -> Pair:
    """When something happens; put first, the time of day or the date turns the German subject and verb round."""
    (subject, verb), (german_subject, german_verb, part) = random_.choice(_EVENTS)
    date, time = _date(random_), _time(random_)
    when = random_.choice([date, time, (f"{date[0]} {time[0]}", f"{date[1]} {time[1]}")])
    if random_.random() < 0.3:
        english, german = f"{when[0]}, {subject} {verb}", f"{when[1]} {german_verb} {german_subject}{part}"
    else:
        english, german = f"{subject} {verb} {when[0]}", f"{german_subject} {german_verb} {when[1]}{part}"
    return _sentence(english), _sentence(german)


def _price(random_: random.Random) -> Pair:
    good, article, german_good = random_.choice(_GOODS)
    colour, german_colour = random_.choice(_COLOURS)
    english, german = _money(random_)
    return (
        _sentence(f"the {colour} {good} costs {english}"),
        _sentence(f"{article} {german_colour} {german_good} kostet {german}"),
    )


def _count(random_: random.Random) -> Pair:
    english, noun, german, german_noun = random_.choice(_COUNTS)
    number = _many(random_)
    return _sentence(f"{english} {number[0]} {noun}"), _sentence(f"{german} {number[1]} {german_noun}")


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _demo() -> dict[str, list[Pair]]:
    """Draws the demo corpus; no English sentence is in it twice, so test sentences were never trained on."""
    random_ = random.Random(_DEMO_SEED)
    pairs: dict[str, str] = {}
    while len(pairs) < sum(_DEMO_SIZES.values()):
        english, german = random_.choice([_event, _price, _count])(random_)
        pairs.setdefault(english, german)
    drawn = iter(pairs.items())
    return {part: [next(drawn) for _ in range(size)] for part, size in _DEMO_SIZES.items()}


def write_demo(to: Path) -> None:
    """Writes the demo corpus, always the same."""
    for part, pairs in _demo().items():
        for side, language in enumerate(("en", "de")):
            _write(to / f"{part}.{language}", (f"{pair[side]}\n" for pair in pairs))


# ---- Multi30k (Elliott et al. 2016, W16-3210): 29,000 image descriptions with their translations ----

_MULTI30K = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
_MULTI30K_FILES = {
    "train.en": ("train.en.gz", "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"),
    "train.de": ("train.de.gz", "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"),
    "dev.en": ("val.en.gz", "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"),
    "dev.de": ("val.de.gz", "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"),
    "test.en": ("test_2016_flickr.en.gz", "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"),
    "test.de": ("test_2016_flickr.de.gz", "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"),
}


def write_multi30k(to: Path) -> None:
    """Writes Multi30k, its test set of 2016, from what is downloaded to `to/download`, or was put there.

    Raises:
        UserError: A file cannot be downloaded, or is not the one it should be.
    """
    archives = {name: _download(*origin, to) for name, origin in _MULTI30K_FILES.items()}
    for name, archive in archives.items():
        with gzip.open(archive, "rt", encoding="utf-8", newline="\n") as lines:
            _write(to / name, lines)


def _download(name: str, sha256: str, to: Path) -> str:
    try:
        return keras.utils.get_file(
            name, _MULTI30K + name, file_hash=sha256, hash_algorithm="sha256", cache_dir=to, cache_subdir="download"
        )
    except Exception as error:  # Keras raises nothing narrower
        names = ", ".join(origin[0] for origin in _MULTI30K_FILES.values())
        raise UserError(
            f"{name} cannot be had from {_MULTI30K} ({error}); put {names} of that folder into {to / 'download'}, "
            "and run the same command again"
        ) from None


def _write(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.writelines(lines)


CORPORA: dict[str, Callable[[Path], None]] = {"demo": write_demo, "multi30k": write_multi30k}
