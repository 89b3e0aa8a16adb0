"""Draws docs/one_class.png, the README's picture: what is learned, what is accepted, what is flagged.

python tools/readme_picture.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import refkernel as rk

BLUE, SKY, VERMILION = "#0072B2", "#D6ECF9", "#D55E00"


def main() -> None:
    """Two panels: the rows that train, and new rows judged by a detector of them."""
    normal, _ = make_moons(200, noise=0.09, random_state=0)
    detector = rk.AutoDetector(false_alarm_rate=0.02).fit(normal)
    usual, _ = make_moons(40, noise=0.09, random_state=3)
    odd = np.array([[0.45, 0.2], [-0.55, -0.45], [1.75, 1.0], [2.35, -0.35], [-1.3, 0.75], [0.55, -0.95]])
    new = np.vstack([usual, odd])
    x, y = np.meshgrid(np.linspace(-1.7, 2.7, 300), np.linspace(-1.2, 1.6, 200))
    decision = detector.decision_function(np.c_[x.ravel(), y.ravel()]).reshape(x.shape)

    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), sharex=True, sharey=True, layout="constrained", facecolor="white")
    axes[0].scatter(*normal.T, s=14, c="black")
    axes[0].set_title("1  Normal rows, nothing else")
    axes[1].contourf(x, y, decision, levels=[0, np.inf], colors=[SKY])
    axes[1].contour(x, y, decision, levels=[0], colors=[BLUE], linewidths=1.6)
    flagged = detector.predict(new) == -1
    axes[1].scatter(*new[~flagged].T, s=26, facecolors="white", edgecolors=BLUE, label="accepted")
    axes[1].scatter(*new[flagged].T, s=48, c=VERMILION, marker="X", label="flagged")
    for row, p in zip(new[flagged], detector.p_values(new[flagged]), strict=True):
        axes[1].annotate(f"p = {p:.3f}", row, (-14, 9), textcoords="offset points", fontsize=8, color=VERMILION)
    axes[1].set_title("2  New rows, at a false-alarm rate of 2 %")
    axes[1].legend(loc="lower left", frameon=False)
    for axis in axes:
        axis.set(xticks=[], yticks=[])
    figure.savefig(Path(__file__).parent.parent / "docs" / "one_class.png", dpi=90)


if __name__ == "__main__":
    main()
