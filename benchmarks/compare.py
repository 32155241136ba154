"""Times two commits in turn and fails where the second is slower.

    make compare BASE=main                             # the working tree against main
    make compare BASE=v1 HEAD=main ROUNDS=8            # more rounds
    make compare BASE=main ONLY="updates layer" RT=1   # real-time priority, which needs root
    make compare BASE=main ACCEPT="eager: one rule"    # a loss that is wanted, and why

Each figure is head over base, with the noise: the base against itself, in the same turns. Head is
slower where the ratio is above 1.05 and further from 1 than twice the noise, and is again when
measured once more; the exit status is 1 then. Figures of fewer than three rounds, and those that
the base has not measured twice, have a noise of at least 5%. A figure that a commit lacks is `-`.
ACCEPT names figures by words that are all in their names; `;` separates entries.

A checkout is driven by what it publishes: the commands of nmt, options of its configuration, the
signature of an export, and rmsnorm_tf. So names inside nmt may change and BASE may be any commit
that has these. Only a new name of an option that compare_work.py gives would need a file for each
side there.
"""

import argparse
import itertools
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks import compare_work as work
from benchmarks.compare_sides import PLACE, Side
from benchmarks.runner import ROOT, noise, ratio

SLOWER = 0.05  # the least loss that counts
ONCE = 0.05  # the least noise of a figure of few rounds
NOISY = 0.1
BASE = "base"
HEAD = "head"
AGAIN = "base again"
Group = Callable[[Sequence[Side], int, Sequence[str]], work.Figures]


class Row(NamedTuple):
    """A figure: head over base, and its noise; None where a commit lacks it."""

    name: str
    base: float | None
    head: float | None
    ratio: float | None = None
    noise: float | None = None

    @property
    def is_slower(self) -> bool:
        return self.ratio is not None and self.ratio - 1 > max(SLOWER, 2 * self.noise)


def row(name: str, rounds: Mapping[str, Sequence[float]]) -> Row:
    """Returns a figure from the values of the rounds by side."""
    middle = {side: median(values) for side, values in rounds.items()}
    if not {BASE, HEAD} <= middle.keys():
        return Row(name, middle.get(BASE), middle.get(HEAD))
    base = rounds[BASE]
    head = rounds[HEAD]
    again = rounds.get(AGAIN, rounds[BASE])
    least = ONCE if len(base) < 3 or AGAIN not in rounds else 0.0
    return Row(name, middle[BASE], middle[HEAD], ratio(head, base), max(noise(again, base), least))


def groups() -> dict[str, Group]:
    """Returns what to measure, by group."""
    found: dict[str, Group] = {
        f"updates {model} {dtype}": partial(work.updates, model=model, dtype=dtype)
        for model, dtype in itertools.product(work.MODELS, work.DTYPES)
    }
    return found | {
        "translate": work.translation,
        "SavedModel": work.saved_model,
        "layer fit import": work.layer,
    }


def checkout(commit: str) -> Path:
    """Writes a commit to a folder in `build/`, unless it is there, and returns the folder."""
    git = partial(subprocess.run, capture_output=True, text=True, cwd=ROOT)
    digest = git(["git", "rev-parse", "--verify", f"{commit}^{{commit}}"]).stdout.strip()
    if not digest or git(["git", "cat-file", "-e", f"{digest}:nmt/__main__.py"]).returncode:
        print(f"compare.py: {commit} is no commit with a nmt/__main__.py", file=sys.stderr)
        sys.exit(2)
    folder = PLACE / digest[:12]
    if not folder.exists():
        part = folder.with_suffix(".part")
        part.mkdir(exist_ok=True)
        archive = subprocess.check_output(["git", "archive", digest, "nmt", "rmsnorm_tf"], cwd=ROOT)
        subprocess.run(["tar", "-x", "-C", part], input=archive, check=True)
        part.rename(folder)
    return folder


def sides_of(base: str, head: str | None) -> list[Side]:
    """Returns base, head and base again."""
    PLACE.mkdir(parents=True, exist_ok=True)
    folders = {BASE: checkout(base), HEAD: checkout(head) if head else ROOT}
    sides = {}
    for name, folder in folders.items():
        compile_all = [sys.executable, "-m", "compileall", "-q", "nmt", "rmsnorm_tf"]
        subprocess.run(compile_all, cwd=folder, check=True)
        cache = PLACE / "cache" / ("tree" if folder == ROOT else folder.name)
        cache.mkdir(parents=True, exist_ok=True)
        sides[name] = Side(name, folder, cache)
    return [*sides.values(), replace(sides[BASE], name=AGAIN)]


def accepted(name: str, entries: Sequence[str]) -> str | None:
    """Returns the reason why a figure may be slower, if an entry `WORDS: REASON` names it."""
    words = set(name.replace(",", " ").replace(":", " ").split())
    for entry in entries:
        wanted, _, reason = entry.partition(":")
        if set(wanted.split()) <= words:
            return reason.strip()
    return None


def timed(name: str, group: Group, *arguments: Any) -> work.Figures:
    """Measures a group, and says how long it took."""
    begun = time.monotonic()
    found = group(*arguments)
    print(f"{name}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    return found


def lines(found: Sequence[Row], verdicts: Mapping[str, str]) -> Iterator[str]:
    """Yields the table."""
    yield f"{'figure':60}{BASE:>9}{HEAD:>9}{'ratio':>9}{'noise':>9}"
    for each in found:
        cells = [number(each.base), number(each.head), "-", "-"]
        if each.ratio is not None:
            cells[2:] = [f"{each.ratio:.3f}", f"{each.noise:.3f}"]
        line = f"{each.name:60}" + "".join(f"{cell:>9}" for cell in cells)
        yield f"{line}  {verdicts.get(each.name, '')}".rstrip()


def number(value: float | None) -> str:
    """Returns three digits or more; below 0.1, in thousandths."""
    if value is None or value >= 1000:
        return "-" if value is None else f"{value:.0f}"
    return f"{value:.3g}" if value >= 0.1 else f"{1e3 * value:.3g}m"


def compare(
    sides: Sequence[Side], chosen: Mapping[str, Group], rounds: int, accept: Sequence[str]
) -> bool:
    """Measures, prints the table, and returns whether head is slower somewhere."""
    found = {}
    group_of = {}
    for name, group in chosen.items():
        for figure, values in timed(name, group, sides, rounds, []).items():
            found[figure] = row(figure, values)
            group_of[figure] = name
    verdicts = {}
    doubted = {}
    for each in found.values():
        if each.is_slower and (reason := accepted(each.name, accept)):
            verdicts[each.name] = f"accepted: {reason}"
        elif each.is_slower:
            doubted.setdefault(group_of[each.name], []).append(each.name)
    for name, figures in doubted.items():
        again = timed(f"{name} once more", chosen[name], sides, rounds, figures)
        for figure in figures:
            second = row(figure, again.get(figure, {}))
            verdict = "SLOWER" if second.is_slower else "not slower"
            if second.ratio is None:
                verdict = "SLOWER, and then not measured"
                second = found[figure]
            verdicts[figure] = f"{verdict}; before: {found[figure].ratio:.3f}"
            found[figure] = second
    print("\n".join(lines(list(found.values()), verdicts)))
    if noisy := sum((each.noise or 0) > NOISY for each in found.values()):
        print(f"\n{noisy} of {len(found)} figures have a noise above {NOISY:.0%}:", end=" ")
        print("measure on a quiet machine, with RT=1")
    return any(verdict.startswith("SLOWER") for verdict in verdicts.values())


def main() -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    add = partial(parser.add_argument, default="")
    add("base", metavar="BASE", help="a commit")
    add("--head", metavar="COMMIT", help="default: the working tree")
    add("--only", metavar="WORDS", help="groups whose names have one of these words")
    add("--accept", metavar="'WORDS: REASON; ...'", help="losses that are wanted")
    parser.add_argument("--rounds", type=int, default=3, help="default: 3")
    options = parser.parse_args()
    accept = [entry for entry in options.accept.split(";") if entry.strip()]
    for entry in accept:
        if not all(map(str.strip, entry.partition(":")[::2])):
            parser.error(f"{entry.strip()!r} is accepted without a reason; give 'WORDS: REASON'")
    words = set(options.only.split())
    known = groups()
    chosen = {name: known[name] for name in known if not words or words & set(name.split())}
    if not chosen:
        parser.error(f"no group has a word of {options.only!r}; there are {', '.join(known)}")
    begun = time.monotonic()
    slower = compare(sides_of(options.base, options.head), chosen, options.rounds, accept)
    print(f"\nSeconds (m: thousandths) or MiB. Measured in {time.monotonic() - begun:.0f} s.")
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
