"""
A kernel of your own
====================

A machine runs at night. Its log holds the hour of the day, which wraps around at 24, and the load. Ordinary kernels do not know
that 23:55 and 00:05 are ten minutes apart. A kernel with your own formula does.
"""

import matplotlib.pyplot as plt
import numpy as np

import refkernel as rk
from refkernel.plot import DecisionRegionDisplay

rng = np.random.default_rng(0)
hour, load = rng.normal(0.0, 1.5, size=120) % 24.0, rng.normal(5.0, 1.0, size=120)
X = np.column_stack([hour, load])
checked = {"00:05, load 5": [0.08, 5.0], "23:55, load 5": [23.92, 5.0], "12:00, load 5": [12.0, 5.0], "00:05, load 12": [0.08, 12.0]}

# %%
# The formula
# -----------
# A kernel is a class with one formula in ``__call__``: X in the rows of the matrix, Z in its columns, ``Z=None`` for Z = X. This one is
# the product of a periodic kernel of the hour and an RBF kernel of the load. The constructor stores its parameters unchanged, so that
# ``clone`` and a grid search can find them.


class Clock(rk.kernels.Kernel):
    """k = exp(-2 sin²(pi (h - h') / 24) / width² - (v - v')² / 2) of hours h and loads v."""

    def __init__(self, width=0.5):
        self.width = width

    def __call__(self, X, Z=None):
        difference = X[:, None, :] - (X if Z is None else Z)[None, :, :]
        turn = np.sin(np.pi * difference[:, :, 0] / 24.0)
        return np.exp(-2.0 * turn**2 / self.width**2 - 0.5 * difference[:, :, 1] ** 2)


# %%
# Where it goes
# -------------
# Use it wherever a kernel goes: in a classifier, or under a reference kernel, here with 12 references found by k-means. Without centring,
# samples far from all references are mapped to the origin. The one-class SVM rejects the origin; SVDD on these references accepts it.

references = rk.ReferenceKernel(Clock(), references=rk.references.KMeans(12), center=False, random_state=0)
models = {
    "SVDD, RBF kernel": rk.SVDD(rk.RBF(1.0), nu=0.05),
    "SVDD, own kernel": rk.SVDD(Clock(), nu=0.05),
    "one-class SVM, own on references": rk.OneClassSVM(references, nu=0.05),
}
figure, axes = plt.subplots(1, 3, figsize=(13, 3.8), sharey=True, layout="constrained")
print(f"{'':36}{'  '.join(checked)}")
for axis, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X)
    words = np.where(model.predict(list(checked.values())) == 1, "accepted", "rejected")
    print(f"{name:36}" + "  ".join(f"{word:{len(what)}}" for what, word in zip(checked, words, strict=True)))
    DecisionRegionDisplay.from_estimator(model, X, ax=axis, legend=axis is axes[2])
    axis.set(title=name, xlim=(0, 24), xticks=range(0, 25, 6), xlabel="hour of the day", ylabel="load" if axis is axes[0] else "")

# %%
# A function works too
# --------------------
# Any callable ``f(X, Z)`` that returns the matrix is a kernel. It has no parameters for a search to vary, and it can only be saved
# with the model if it is defined in a module.


def clock(X, Z):
    """The same formula, its width fixed."""
    return Clock(width=0.5)(X, Z)


as_function = rk.SVDD(clock, nu=0.05).fit(X)
difference = np.abs(as_function.decision_function(X) - models["SVDD, own kernel"].decision_function(X)).max()
print(f"The function and the class decide alike: their decision values differ by at most {difference:.0e}.")
plt.show()
