"""
Made-up outliers
================

Without known outliers, a search still has to test against something. From the training rows alone, ``rk.pseudo_outliers`` makes rows that
should look wrong beside them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.metrics import roc_auc_score

import refkernel as rk

X, _ = make_moons(150, noise=0.07, random_state=0)
new, _ = make_moons(150, noise=0.07, random_state=1)
sources = {
    "PermutedColumns()": rk.pseudo_outliers.PermutedColumns(),
    "Box()": rk.pseudo_outliers.Box(),
    "SwappedColumns()": rk.pseudo_outliers.SwappedColumns(),
    "PushedOutward()": rk.pseudo_outliers.PushedOutward(),
    "NeighbourNoise()": rk.pseudo_outliers.NeighbourNoise(),
    "PermutedColumns() + Box()": rk.pseudo_outliers.PermutedColumns() + rk.pseudo_outliers.Box(),
}
detector = rk.SVDD().fit(X)

# %%
# Five sources and a sum
# ----------------------
# ``PermutedColumns`` keeps the values of every column and breaks the relations between columns; ``Box`` fills the box around the samples.
# Their sum is the default of ``OneClassGridSearch`` without known outliers. The AUROC is that of a plain SVDD on new samples against each
# source. It says nothing certain about your real outliers, which nobody has seen yet.

figure, axes = plt.subplots(2, 3, figsize=(12, 6.6), sharex=True, sharey=True, layout="constrained")
for axis, (name, source) in zip(axes.flat, sources.items(), strict=True):
    made_up = source.draw(X, 150, random_state=0)
    scores = detector.score_samples(np.vstack([new, made_up]))
    auroc = roc_auc_score(np.repeat([1, 0], [len(new), len(made_up)]), scores)
    print(f"{name:28} AUROC of SVDD against it {auroc:.3f}")
    axis.scatter(*X.T, s=12, c="#0072B2", label="training samples")
    axis.scatter(*made_up.T, s=16, c="#D55E00", marker="x", linewidths=1, label="made up")
    axis.set_title(f"{name}, AUROC {auroc:.2f}")
axes[0, 2].legend(loc="upper right")
plt.show()
