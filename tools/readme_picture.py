"""Draws docs/one_class.png, the first page's picture: what its six lines learn from, and what they flag.

python tools/readme_picture.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

import refkernel as rk

BLUE, VERMILION = "#0072B2", "#D55E00"
SEPAL, PETAL = 1, 2  # the columns that are drawn, of four that are used


def main() -> None:
    """Two panels: the rows that train, and all other rows as the detector labels them."""
    X, species = load_iris(return_X_y=True)
    normal = X[species == 0]
    detector = rk.AutoDetector(false_alarm_rate=0.05).fit(normal[:40])

    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), sharex=True, sharey=True, layout="constrained", facecolor="white")
    axes[0].scatter(normal[:40, SEPAL], normal[:40, PETAL], s=18, c="black")
    axes[0].set(title="1  Normal rows, nothing else: 40 setosa", xlabel="sepal width (cm)", ylabel="petal length (cm)")
    for number, name, marker in ((0, "setosa", "o"), (1, "versicolor", "X"), (2, "virginica", "P")):
        new = X[species == number][40:] if number == 0 else X[species == number]
        label = detector.predict(new)
        colours = [BLUE if accepted == 1 else VERMILION for accepted in label]
        axes[1].scatter(
            new[:, SEPAL], new[:, PETAL], s=30, c=colours, marker=marker, label=f"{name}: {(label == -1).sum()} of {len(new)} flagged"
        )
    axes[1].set(title="2  New rows, at a false-alarm rate of 5 %", xlabel="sepal width (cm)", xlim=(1.9, 5.3))
    axes[1].legend(loc=(0.5, 0.27), frameon=False)
    figure.savefig(Path(__file__).parent.parent / "docs" / "one_class.png", dpi=90)


if __name__ == "__main__":
    main()
