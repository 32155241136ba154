"""Estimates what many GPUs would reach: prints the tables of docs/scaling.md and draws its picture.

    python benchmarks/scaling.py
    python benchmarks/scaling.py --to docs/scaling.png     # needs matplotlib; writes PNG and SVG
    python benchmarks/scaling.py --rnn_seconds 0.05 --transformer_seconds 0.2

Nothing is measured. Every assumption is an option. An update takes the time that one GPU takes for its own share of a
batch, and then the time of the reduction, as in nmt: the two do not overlap. The share of a GPU stays the same, so the
batch grows with the number of GPUs.
"""

import argparse
import math
from pathlib import Path
from typing import NamedTuple

FLOAT = INDEX = 4  # bytes
IN_MACHINE = 8  # GPUs
GPUS = (8, 64, 512)
NETWORKS = (25, 100, 400)  # Gbit/s of a machine
# A colour that everybody can tell from the others (Okabe and Ito), a marker and dashes for each network.
STYLES = (("#D55E00", "^", "-"), ("#0072B2", "s", "--"), ("#009E73", "o", ":"))


class Assumptions(NamedTuple):
    """What the estimate takes as given."""

    rnn_seconds: float = 0.1
    transformer_seconds: float = 0.1
    pairs: int = 80
    width: int = 32
    words: int = 32_000
    nvlink: float = 300.0
    reached: float = 0.8
    latency: float = 20.0
    inside_latency: float = 5.0


MEANINGS = {
    "rnn_seconds": "seconds of an update of the RNN on one GPU",
    "transformer_seconds": "seconds of an update of Transformer-big on one GPU, with 4,096 tokens on each side",
    "pairs": "sentence pairs of each GPU in an update of the RNN, as in the paper",
    "width": "padded tokens on each side of such a pair",
    "words": "words of a vocabulary: two for the RNN, one for both sides of Transformer-big",
    "nvlink": "GB/s that a GPU sends inside a machine, by NVLink",
    "reached": "share of the bandwidths that a reduction reaches",
    "latency": "µs of a step of the ring between machines",
    "inside_latency": "µs of a step of the ring inside a machine",
}


class Case(NamedTuple):
    """A model and how it is trained.

    Attributes:
        seconds: Time of the share of one GPU, without reduction.
        dense: Bytes of its dense gradients.
        rows: Bytes of its sparse gradients: a row and its index for each token.
    """

    name: str
    seconds: float
    dense: int
    rows: int


class Time(NamedTuple):
    """Seconds of the parts of an update."""

    compute: float
    dense: float
    rows: float
    latency: float

    @property
    def bound(self) -> str:
        """The largest part of the reduction, or `compute` if the reduction takes less time than that."""
        if self.compute >= sum(self) / 2:
            return "compute"
        return max(self._fields[1:], key=lambda name: getattr(self, name))

    def speed(self, gpus: int) -> float:
        """Returns how many times as many sentences pass in a second as with one GPU."""
        return gpus * self.compute / sum(self)


def rnn_sizes(words: int, embedding: int, state: int) -> tuple[int, int]:
    """Returns the weights of the RNN outside of its two embeddings, and in them."""

    def gru(inputs):
        return 3 * state * (inputs + state + 1)

    encoder = 2 * gru(embedding)
    decoder = gru(embedding) + gru(2 * state) + state * (2 * state + 1)  # two GRUs and the first state
    attention = 2 * state * (2 * state + state + 2)
    output = embedding * (embedding + 3 * state + 3) + words * (embedding + 1)
    return encoder + decoder + attention + output, 2 * words * embedding


def transformer_size(words: int, units: int, inner: int, depth: int) -> int:
    """Returns the weights of a Transformer with as many layers on either side and one embedding for everything."""
    feed_forward = 2 * units * inner + inner + units
    return words * units + depth * (4 * units**2 + feed_forward) + depth * (8 * units**2 + feed_forward)


def most_gpus_for_rows(rows: int, words: int, units: int) -> int:
    """Returns with how many GPUs at most each sends fewer bytes if `rows` rows of each are gathered.

    The alternative reduces the whole embedding of `words` rows.
    """
    return math.ceil(2 * words * FLOAT * units / (rows * (FLOAT * units + INDEX))) - 1


def update_time(case: Case, gpus: int, gbits: float, given: Assumptions) -> Time:
    """Returns the time of an update: a ring of all GPUs, as fast as its slowest link.

    A GPU sends 2 (N-1)/N of the bytes of dense gradients in 2 (N-1) steps, and N-1 times those of its own rows in N-1
    steps.
    """
    inside = gpus <= IN_MACHINE
    bandwidth = given.reached * 1e9 * (given.nvlink if inside else min(given.nvlink, gbits / 8))
    step = 1e-6 * (given.inside_latency if inside else given.latency)
    steps = (gpus - 1) * (3 if case.rows else 2)
    dense = 2 * (gpus - 1) / gpus * case.dense / bandwidth
    return Time(case.seconds, dense, (gpus - 1) * case.rows / bandwidth, steps * step)


def cases(given: Assumptions) -> list[Case]:
    """Returns the paper's RNN and Transformer-big as nmt trains them, and two variants."""
    others, tables = (FLOAT * size for size in rnn_sizes(given.words, 512, 1024))
    rows = 2 * given.pairs * given.width * (FLOAT * 512 + INDEX)
    big = FLOAT * transformer_size(given.words, 1024, 4096, 6)
    return [
        Case("RNN, rows", given.rnn_seconds, others, rows),
        Case("RNN, dense", given.rnn_seconds, others + tables, 0),
        Case("Transformer-big", given.transformer_seconds, big, 0),
        Case("Transformer-big, 4 parts", 4 * given.transformer_seconds, big, 0),
    ]


def assumption_table(given: Assumptions) -> list[str]:
    lines = ["| assumption | option | value |", "|---|---|---|"]
    return lines + [f"| {MEANINGS[name]} | `--{name}` | {value:,g} |" for name, value in given._asdict().items()]


def size_table(given: Assumptions) -> list[str]:
    """Returns a table of what is reduced and how many bytes a GPU sends for it."""
    sent = " | ".join(f"MB that each of {gpus} sends" for gpus in GPUS)
    lines = [f"| | MB of dense gradients | MB of rows | {sent} |", f"|---|---|---|{'---|' * len(GPUS)}"]
    for case in cases(given):
        total = [2 * (gpus - 1) / gpus * case.dense + (gpus - 1) * case.rows for gpus in GPUS]
        cells = [f"{size / 1e6:,.0f}" for size in (case.dense, case.rows, *total)]
        lines.append(f"| {case.name} | {' | '.join(cells)} |")
    return lines


def speed_table(given: Assumptions) -> list[str]:
    """Returns a table of the speed, as a multiple of one GPU, its share of the ideal, and what bounds it."""
    heads = " | ".join(f"{gbits} Gbit/s" for gbits in NETWORKS)
    lines = [f"| | GPUs | {heads} |", f"|---|---|{'---|' * len(NETWORKS)}"]
    for case in cases(given):
        for gpus in GPUS:
            times = [update_time(case, gpus, gbits, given) for gbits in NETWORKS]
            speeds = [(time.speed(gpus), time.bound) for time in times]
            cells = [f"{speed:.3g} ({speed / gpus:.0%}), {bound}" for speed, bound in speeds]
            lines.append(f"| {case.name} | {gpus} | {' | '.join(cells)} |")
    return lines


def draw(figure, given: Assumptions) -> None:
    """Draws the share of the ideal speed against the number of GPUs, a plot for each case."""
    counts = [2**power for power in range(10)]
    plots = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, case in zip(plots.flat, cases(given), strict=True):
        for gbits, (color, marker, dashes) in zip(NETWORKS, STYLES, strict=True):
            shares = [100 * update_time(case, gpus, gbits, given).speed(gpus) / gpus for gpus in counts]
            axes.plot(counts, shares, color=color, marker=marker, linestyle=dashes, label=f"{gbits} Gbit/s")
        axes.set_title(case.name)
        axes.set_xscale("log", base=2)
        axes.set_xticks(counts, list(map(str, counts)))
        axes.set_ylim(0, 105)
        axes.axvline(IN_MACHINE, color="gray", linewidth=1)
        axes.grid(alpha=0.3)
    plots[0, 0].annotate("one machine", (IN_MACHINE, 4), (-4, 0), textcoords="offset points", ha="right", color="gray")
    lines, labels = plots[0, 0].get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside upper center", ncols=len(NETWORKS), title="network of a machine")
    figure.supxlabel("GPUs")
    figure.supylabel("% of the ideal speed")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    for name, value in Assumptions()._asdict().items():
        parser.add_argument(f"--{name}", type=type(value), default=value, help=MEANINGS[name])
    parser.add_argument("--to", type=Path, metavar="PNG", help="the picture")
    options = vars(parser.parse_args())
    to = options.pop("to")
    given = Assumptions(**options)
    print("\n\n".join("\n".join(table(given)) for table in (assumption_table, size_table, speed_table)))
    most = most_gpus_for_rows(given.pairs * given.width, given.words, 512)
    print(f"\nOf the RNN's embeddings, rows are fewer bytes with up to {most} GPUs.")
    if to:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(8, 6), layout="constrained")
        draw(figure, given)
        for path in (to, to.with_suffix(".svg")):
            figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
