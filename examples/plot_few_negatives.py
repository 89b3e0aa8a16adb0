"""
A few known outliers
====================

Faults are rare: you may have none on record, or one, or ten. Here the targets are one half moon and the faults come from the other. SVDD
can ignore known outliers or be repelled by them, and the one-class SVM can use references that resemble them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import refkernel as rk
from refkernel.plot import DecisionRegionDisplay

X_all, moon = make_moons(160, noise=0.2, random_state=0)
targets, faults = X_all[moon == 0], X_all[moon == 1]
X_test, moon_test = make_moons(1000, noise=0.2, random_state=1)
y_test = np.where(moon_test == 0, 1, -1)

# %%
# The three ways
# --------------
# Known outliers are the rows with y = -1. Plain SVDD never trains on them. ``negatives="repel"`` pushes them out of the ball.
# ``references="negatives7"`` uses the outliers and random draws like them as references, so the labels shape only the kernel.
# With no outlier there are no such references, and the plain one-class SVM takes its place.


def models(q):
    """The three classifiers for q known outliers."""
    by_references = rk.ReferenceKernel(rk.RBF(1.0), references="negatives7", random_state=0) if q else rk.RBF(1.0)
    return {
        "plain SVDD": rk.SVDD(nu=0.1),
        "SVDD, repelled": rk.SVDD(nu=0.1, negatives="repel"),
        "one-class SVM, references": rk.OneClassSVM(by_references, nu=0.1),
    }


# %%
# 0, 1, 3, 10
# -----------
# Gmean is measured on 1000 new samples, half of them faults.

counts = (0, 1, 3, 10)
figure, axes = plt.subplots(3, 4, figsize=(13, 7.5), sharex=True, sharey=True, layout="constrained")
scores = {}
for column, q in enumerate(counts):
    X, y = np.vstack([targets, faults[:q]]), np.repeat([1, -1], [len(targets), q])
    for row, (name, model) in enumerate(models(q).items()):
        axis = axes[row, column]
        model.fit(X, y)
        scores[name, q] = rk.metrics.gmean_score(y_test, model.predict(X_test))
        DecisionRegionDisplay.from_estimator(model, X, y, ax=axis, grid=100, legend=column == 3)
        axis.set(title=f"{q} known, Gmean {scores[name, q]:.2f}", xlabel="", ylabel=name if column == 0 else "")

print(f"{'Gmean by known outliers':28}" + "".join(f"{q:8}" for q in counts))
for name in models(0):
    print(f"{name:28}" + "".join(f"{scores[name, q]:8.3f}" for q in counts))
plt.show()
