"""
What the references do
======================

A reference kernel describes a sample by its kernel values against reference vectors, and forgets everything else. What the references
cannot see, the model cannot tell apart. Here are the same samples and the same base kernel with six sets of references.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import refkernel as rk
from refkernel.plot import DecisionRegionDisplay

X, _ = make_moons(100, noise=0.08, random_state=0)
X -= X.mean(axis=0)
left_half = X[X[:, 0] < 0][:25]
choices = {
    "the samples (case 1)": "training",
    "draws of N(0, 1) (case 2)": "case2",
    "half of the samples (case 3)": "case3",
    "12 centres of k-means": rk.references.KMeans(12),
    "a wide box": rk.references.Uniform(60),
    "25 samples on the left": rk.references.Given(left_half),
}

# %%
# Six descriptions
# ----------------
# Each is an SVDD with nu = 0.1. Diamonds are references. The rank is the number of features that the map keeps: at most one per reference,
# minus one for centring. In the last panel no reference is near the samples on the right.

figure, axes = plt.subplots(2, 3, figsize=(13, 7), sharex=True, sharey=True, layout="constrained")
print(f"{'references':32}{'count':>7}{'rank':>7}{'accepted':>11}")
for axis, (name, references) in zip(axes.flat, choices.items(), strict=True):
    kernel = rk.ReferenceKernel(rk.RBF(scale=0.3), references=references, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rk.FarSamplesWarning)  # true of some; the example of the two traps has more
        model = rk.SVDD(kernel, nu=0.1).fit(X)
    DecisionRegionDisplay.from_estimator(model, X, ax=axis, grid=140, legend=False)
    R = model.kernel_.references_
    axis.scatter(*R.T, marker="D", s=16, facecolors="none", edgecolors="#009E73", linewidths=1.2)
    axis.set(title=f"{name}: rank {model.kernel_.rank_}", xlabel="", ylabel="", xlim=(-1.95, 1.9), ylim=(-1.05, 1.05))
    print(f"{name:32}{len(R):7}{model.kernel_.rank_:7}{np.mean(model.predict(X) == 1):11.0%}")
plt.show()
