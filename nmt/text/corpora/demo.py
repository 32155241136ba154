"""Generates the demo corpus: short sentences with numbers, dates, times and prices in words."""

import itertools
import random
from pathlib import Path

from num2words import num2words

from ...storage.files import atomic_write

Pair = tuple[str, str]  # English, German

_SIZES = {"train": 8000, "dev": 200, "test": 200}
_SEED = 1910

_WEEKDAYS = [
    ("Monday", "Montag"), ("Tuesday", "Dienstag"), ("Wednesday", "Mittwoch"),
    ("Thursday", "Donnerstag"), ("Friday", "Freitag"), ("Saturday", "Samstag"),
    ("Sunday", "Sonntag"),
]  # fmt: skip
_MONTHS = [
    ("January", "Januar"), ("February", "Februar"), ("March", "März"), ("April", "April"),
    ("May", "Mai"), ("June", "Juni"), ("July", "Juli"), ("August", "August"),
    ("September", "September"), ("October", "Oktober"), ("November", "November"),
    ("December", "Dezember"),
]  # fmt: skip
# Subject and verb. The prefix of a separable German verb ends the sentence.
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
_COLOURS = [
    ("red", "rote"),
    ("green", "grüne"),
    ("blue", "blaue"),
    ("black", "schwarze"),
    ("new", "neue"),
]
_GOODS = [
    ("hat", "der", "Hut"), ("bag", "die", "Tasche"), ("book", "das", "Buch"),
    ("table", "der", "Tisch"), ("lamp", "die", "Lampe"), ("bicycle", "das", "Fahrrad"),
]  # fmt: skip


def _number(n: int) -> Pair:
    return num2words(n).replace(",", ""), num2words(n, lang="de")


def _date(rng: random.Random) -> Pair:
    month = rng.randrange(12)
    day = rng.randint(1, 28)
    year = rng.randint(1901, 1999) % 100
    english = f"the {num2words(day, to='ordinal')} of {_MONTHS[month][0]}"
    german = f"dem {num2words(day, to='ordinal', lang='de')}n {_MONTHS[month][1]}"
    if rng.random() < 0.5:
        english += f", nineteen {'oh ' if year < 10 else ''}{_number(year)[0]}"
        german += f" neunzehnhundert{_number(year)[1]}"
    if rng.random() < 0.5:
        weekday = rng.choice(_WEEKDAYS)
        return f"on {weekday[0]}, {english}", f"am {weekday[1]}, {german}"
    return f"on {english}", f"am {german.removeprefix('dem ')}"


def _time(rng: random.Random) -> Pair:
    hour = rng.randint(1, 12)
    after = rng.choice([0, 5, 10, 15, 20, 30, 40, 45, 50, 55])
    this = _number(hour)
    coming = _number(hour % 12 + 1)
    if after == 0:
        return f"at {this[0]} o'clock", f"um {'ein' if hour == 1 else this[1]} Uhr"
    if after == 30:
        return f"at half past {this[0]}", f"um halb {coming[1]}"
    minutes = min(after, 60 - after)
    english, german = ("a quarter", "Viertel") if minutes == 15 else _number(minutes)
    if after < 30:
        return f"at {english} past {this[0]}", f"um {german} nach {this[1]}"
    return f"at {english} to {coming[0]}", f"um {german} vor {coming[1]}"


def _many(rng: random.Random) -> Pair:
    """Draws a number above 1 without a final `eins`, which German inflects before a noun."""
    n = rng.choice([rng.randint(2, 99), rng.randint(100, 9999)])
    return _number(n + 1 if n % 100 == 1 else n)


def _money(rng: random.Random) -> Pair:
    english, german = _many(rng)
    if rng.random() < 0.5:
        cents = _number(rng.randint(2, 99))
        return f"{english} euros and {cents[0]} cents", f"{german} Euro {cents[1]}"
    return f"{english} euros", f"{german} Euro"


def _event(rng: random.Random) -> Pair:
    """Says when something happens. German inverts subject and verb after a leading time or date."""
    (subject, verb), (german_subject, german_verb, prefix) = rng.choice(_EVENTS)
    date = _date(rng)
    time = _time(rng)
    when = rng.choice([date, time, (f"{date[0]} {time[0]}", f"{date[1]} {time[1]}")])
    if rng.random() < 0.3:
        return f"{when[0]}, {subject} {verb}", f"{when[1]} {german_verb} {german_subject}{prefix}"
    return f"{subject} {verb} {when[0]}", f"{german_subject} {german_verb} {when[1]}{prefix}"


def _price(rng: random.Random) -> Pair:
    good, article, german_good = rng.choice(_GOODS)
    colour, german_colour = rng.choice(_COLOURS)
    english, german = _money(rng)
    return (
        f"the {colour} {good} costs {english}",
        f"{article} {german_colour} {german_good} kostet {german}",
    )


def _count(rng: random.Random) -> Pair:
    english, noun, german, german_noun = rng.choice(_COUNTS)
    number = _many(rng)
    return f"{english} {number[0]} {noun}", f"{german} {number[1]} {german_noun}"


def _draw() -> dict[str, list[Pair]]:
    """Returns the pairs of each part.

    English sentences are unique, so no test sentence is in the training text.
    """
    rng = random.Random(_SEED)
    pairs: dict[str, str] = {}
    while len(pairs) < sum(_SIZES.values()):
        texts = rng.choice([_event, _price, _count])(rng)
        english, german = (f"{text[0].upper()}{text[1:]}." for text in texts)
        pairs.setdefault(english, german)
    drawn = iter(pairs.items())
    return {part: list(itertools.islice(drawn, size)) for part, size in _SIZES.items()}


def write_demo(to: Path) -> None:
    """Writes the demo corpus, which is the same every time."""
    to.mkdir(parents=True, exist_ok=True)
    for part, pairs in _draw().items():
        for language, sentences in zip(("en", "de"), zip(*pairs, strict=True), strict=True):
            with atomic_write(to / f"{part}.{language}") as file:
                file.writelines(f"{sentence}\n" for sentence in sentences)
