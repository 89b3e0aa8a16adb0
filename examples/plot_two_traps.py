"""
Two traps, and the warnings that name them
==========================================

A reference kernel on RBF can go wrong in two ways without an error. ``fit`` warns about both. Here they are, zoomed out.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import refkernel as rk
from refkernel.plot import DecisionRegionDisplay

X = np.random.default_rng(0).normal(size=(80, 2))
far = np.array([[9.0, 9.0], [-9.0, 9.0], [9.0, -9.0], [-9.0, -9.0]])
models = {
    "trap 1: far samples": rk.SVDD(rk.ReferenceKernel(rk.RBF(scale=0.05), "case2", random_state=0), nu=0.1),
    "remedy: a wider kernel": rk.SVDD(rk.ReferenceKernel(rk.RBF(scale=10.0), "case2", random_state=0), nu=0.1),
    "trap 2: degenerate": rk.OneClassSVM(rk.ReferenceKernel(rk.RBF(scale=1.0), "training"), nu=0.1),
    "remedy: center=False": rk.OneClassSVM(rk.ReferenceKernel(rk.RBF(scale=1.0), "training", center=False), nu=0.1),
}

# %%
# The warnings and the picture
# ----------------------------
# Trap 1: far from all references every kernel value is 0, so all such samples are one point of the feature space; if it lies inside, the
# whole far field is accepted. Trap 2: centred on its own targets, a one-class SVM can make w = 0, and its decision is rounding noise.

figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
for axis, (name, model) in zip(axes.flat, models.items(), strict=True):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model.fit(X)
    names = ", ".join(warning.category.__name__ for warning in said) or "no warning"
    accepted = np.mean(model.predict(far) == 1)
    print(f"{name:26} {names:28} far corners accepted: {accepted:.0%}")
    DecisionRegionDisplay.from_estimator(model, np.vstack([X, far]), np.repeat([1, -1], [80, 4]), ax=axis, grid=160, legend=False)
    axis.set(title=f"{name}\n{names}", xlabel="", ylabel="")
plt.show()
