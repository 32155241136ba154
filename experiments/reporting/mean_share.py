"""The section of the share of the mean in the input of every norm, before and during a training."""

from collections.abc import Mapping, Sequence
from statistics import mean

from .section import Section

Shares = Mapping[str, Mapping[str, float]]  # of each norm, by when it was measured


def mean_share_section(rows: Mapping[str, Sequence[Shares]], over: str, text: str) -> Section | None:
    """Returns the section, or `None` without any rows.

    Args:
        rows: The shares of each seed, by the label of a row; in order of time.
        over: What the mean runs over, in words.
        text: Where it was measured, in sentences.
    """
    if not rows:
        return None
    times = list(dict.fromkeys(when for seeds in rows.values() for when in seeds[0]))
    return Section(
        name="mean_share",
        title="How much of a norm's input is its mean",
        text=[
            f"E[mean(a)²] / E[mean(a²)] of the input a of each norm, with the means over {over}: the part of the mean "
            f"square that LayerNorm's centring removes and RMSNorm keeps. {text} The table has the mean over the norms "
            "and the seeds, and the range of the norms at the end, each the mean of the seeds."
        ],
        columns=["", "seeds", *times, "norms, at the end"],
        rows=[[label, str(len(seeds)), *_cells(seeds, times)] for label, seeds in rows.items()],
        data=rows,
    )


def _cells(seeds: Sequence[Shares], times: Sequence[str]) -> list[str]:
    found = {when: [shares[when].values() for shares in seeds if when in shares] for when in times}
    means = [f"{mean(map(mean, each)):.1%}" if len(each) == len(seeds) else "" for each in found.values()]
    last = [shares[list(shares)[-1]] for shares in seeds]
    norms = [mean(each[norm] for each in last) for norm in last[0]]
    return [*means, f"{min(norms):.1%} to {max(norms):.1%}"]
