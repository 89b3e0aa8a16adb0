"""
First steps
===========

Three descriptions of the same 100 samples: a plain kernel, a reference kernel, and a plain kernel with known outliers.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.pipeline import make_pipeline

import refkernel as rk

# %%
# Samples and models
# ------------------
# Rows with label -1 are known outliers. The first two models ignore them; in the third they push the boundary away.

targets, _ = make_moons(100, noise=0.1, random_state=0)
outliers = np.array([[0.4, 0.3], [0.5, 0.1], [0.6, 0.35], [-0.6, -0.5], [1.6, 0.8], [-1.2, 1.0]])
X = np.vstack([targets, outliers])
label = np.r_[np.ones(len(targets)), -np.ones(len(outliers))]
models = {
    "SVDD, RBF kernel": rk.SVDD(rk.RBF(scale=0.3), nu=0.1),
    "SVDD, random references (case 2)": rk.SVDD(rk.ReferenceKernel(rk.RBF(scale=3.0), references="case2", random_state=0), nu=0.1),
    "SVDD, known outliers repel": rk.SVDD(rk.RBF(scale=0.3), nu=0.1, negatives="repel"),
}

# %%
# Fit and draw
# ------------
# Brighter is more normal; the white line is where the decision value is 0. ``refkernel.plot`` draws such pictures in one call: see
# the other examples.

x, y = np.meshgrid(np.linspace(-1.8, 2.8, 240), np.linspace(-1.2, 1.6, 200))
figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), sharex=True, sharey=True, layout="constrained")
for axis, (title, model) in zip(axes, models.items(), strict=True):
    detector = make_pipeline(rk.TargetScaler(), model).fit(X, label)
    decision = detector.decision_function(np.c_[x.ravel(), y.ravel()]).reshape(x.shape)
    rejected = np.mean(detector.predict(targets) == -1), np.mean(detector.predict(outliers) == -1)
    print(f"{title:36} rejects {rejected[0]:4.0%} of the targets, {rejected[1]:4.0%} of the known outliers")
    axis.contourf(x, y, decision, levels=20, cmap="cividis")
    axis.contour(x, y, decision, levels=[0], colors="white", linewidths=2)
    axis.scatter(*targets.T, s=14, c="white", edgecolors="black", linewidths=0.6, label="targets")
    axis.scatter(*X[model.support_].T, s=26, c="#d55e00", edgecolors="black", linewidths=0.6, label="support vectors")
    axis.scatter(*outliers.T, s=40, c="black", marker="x", label="known outliers")
    axis.set_title(title)
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()
