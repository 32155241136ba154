"""Draws docs/picture.png: one vector before and after LayerNorm and RMSNorm.

    python docs/picture.py

Needs matplotlib.
"""

from pathlib import Path

import keras
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from rmsnorm_tf import RMSNormalization

X = np.array([[2.4, 0.6, 3.2, -0.8, 1.6, 2.8, -1.6, 1.8]], "float32")
# Colours of the palette by Okabe and Ito.
ROWS = [
    ("Input x", "#5F5F5F", lambda x: x),
    ("LayerNorm: (x - mean) / deviation", "#0072B2", keras.layers.LayerNormalization()),
    ("RMSNorm: x / root mean square", "#D55E00", RMSNormalization()),
]


def main():
    figure, plots = plt.subplots(len(ROWS), figsize=(6, 6), sharex=True, layout="constrained")
    for plot, (title, colour, function) in zip(plots, ROWS, strict=True):
        y = np.asarray(function(X))[0]
        plot.bar(range(y.size), y, color=colour, width=0.7)
        plot.hlines(0, -0.6, y.size - 0.4, color="black", linewidth=1)
        plot.hlines(
            y.mean(), -0.6, y.size - 0.4, color="black", linewidth=1.5, linestyle=(0, (4, 3))
        )
        mean = round(float(y.mean()), 2) + 0.0  # + 0.0 turns -0.0 into 0.0
        plot.annotate(f"mean {mean:.2f}", (y.size - 0.3, mean), va="center", fontsize=15)
        plot.set_title(title, loc="left", fontsize=17, fontweight="bold", color=colour)
        plot.set_xlim(-0.6, y.size + 1.5)
        plot.tick_params(labelsize=14)
        plot.set_xticks([])
        plot.spines[["top", "right", "bottom"]].set_visible(False)
    figure.savefig(Path(__file__).with_name("picture.png"), dpi=150)


if __name__ == "__main__":
    main()
