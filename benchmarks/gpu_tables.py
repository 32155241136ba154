"""Prints the measurements of gpu_measure.py as Markdown tables."""

import statistics

import numpy as np

_REFERENCES = ("keras RMSNormalization", "none")
_COPY = "copy"


def show(result: dict) -> None:
    """Prints the device, the versions and the table of each group."""
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    print(f"{result['device']}, driver {result['driver']}, {versions}, {result['date']}")
    bandwidth = copy_bandwidth(result["groups"])
    if bandwidth is not None:
        print(f"a large copy: {bandwidth / 1e9:.0f} GB/s")
    for entry in result["groups"]:
        print("\n" + table(entry, bandwidth))


def copy_bandwidth(groups: list[dict]) -> float | None:
    """Returns the bytes per second that the largest copy reads and writes, or None without one."""
    found = [(entry["group"]["bytes"], entry["kinds"][_COPY]) for entry in groups if _COPY in entry["kinds"]]
    if not found:
        return None
    size, kind = max(found, key=lambda pair: pair[0])
    return size / _seconds(kind)


def table(entry: dict, bandwidth: float | None = None) -> str:
    """Returns the table of one group."""
    group, kinds = entry["group"], entry["kinds"]
    reference = next((kind for kind in _REFERENCES if kind in kinds), next(iter(kinds)))
    lines = [f"{group['what']}, {group['shape']}, {group['dtype']}, {group['passes']}", ""]
    lines += [f"| | ms | ± | / {reference} | GPU ms | bandwidth | difference |", "|---" + "|---:" * 6 + "|"]
    for kind, found in kinds.items():
        below, median, above = np.quantile(found["rounds"], [0.25, 0.5, 0.75])
        ratio = np.median(np.divide(found["rounds"], kinds[reference]["rounds"]))
        share = group["bytes"] / _seconds(found) / bandwidth if group["bytes"] and bandwidth else None
        cells = [f"{median * 1e3:.4f}", f"{(above - below) / 2e-3:.4f}", f"{ratio:.3f}"]
        cells += ["" if found["busy"] is None else f"{found['busy'] * 1e3:.4f}"]
        cells += ["" if share is None else f"{share:.2f}", f"{found['difference']:.0e}"]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _seconds(kind):
    """Returns the seconds that the GPU computes during one call, or if unknown, the seconds of the call."""
    return kind["busy"] or statistics.median(kind["rounds"])
