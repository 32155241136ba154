"""`python -m experiments [DATA]`: trains what is not trained yet, measures, and writes the report."""

import argparse
import signal
import sys

from .baseline import make_baseline
from .corpus import prepare, read_corpus
from .errors import UserError
from .place import Place
from .plan import all_runs, read_rows
from .training import train_all


def reproduce(data: str) -> None:
    """Trains every row on a corpus, and writes the report."""
    corpus = read_corpus(data)
    place = Place.of(corpus.name)
    make_baseline(place)
    prepare(corpus, place)
    runs = list(all_runs(read_rows()))
    train_all(runs, corpus, place)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments", description=__doc__.split("`: ")[1])
    parser.add_argument("data", nargs="?", default="demo", help="a corpus of experiments/corpora, or a folder of text")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        reproduce(parser.parse_args().data)
    except UserError as error:
        print(f"experiments: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
