"""
Centring and truncation
=======================

Two steps lead from the kernel values against the references to the features: the mean of the references is moved to the origin, and
directions whose eigenvalue is below a floor are dropped. What difference do they make?
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import refkernel as rk
from refkernel.plot import DecisionRegionDisplay

X, _ = make_moons(100, noise=0.08, random_state=0)
floors = (1e-6, 1e-1)

# %%
# Four maps
# ---------
# The references are 40 of the samples. Dropping directions loses detail: with ten of them left, the map cannot tell samples
# far away from those nearby, and accepts both.

figure, axes = plt.subplots(2, 2, figsize=(11, 6.4), sharex=True, sharey=True, layout="constrained")
spectra = {}
print(f"{'center':>8}{'floor':>10}{'rank':>6}{'accepted':>10}")
for row, center in enumerate((True, False)):
    for column, floor in enumerate(floors):
        kernel = rk.ReferenceKernel(rk.RBF(scale=0.3), rk.references.Subset(40), center, floor, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", rk.FarSamplesWarning)
            model = rk.SVDD(kernel, nu=0.1).fit(X)
        spectra[center] = rk.ReferenceMap(rk.RBF(scale=0.3), rk.references.Subset(40), center, 0.0, 0).fit(X).eigenvalues_
        DecisionRegionDisplay.from_estimator(model, X, ax=axes[row, column], grid=140, legend=False)
        kind = "centred" if center else "not centred"
        axes[row, column].set(title=f"{kind}, floor {floor:g}: rank {model.kernel_.rank_}", xlabel="", ylabel="")
        print(f"{center!s:>8}{floor:10g}{model.kernel_.rank_:6}{np.mean(model.predict(X) == 1):10.0%}")

# %%
# The spectra
# -----------
# The eigenvalues of an RBF kernel on 40 references fall by orders of magnitude. Centring removes the largest direction, which all samples
# share. The article uses a floor of 1e-6.

figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), sharey=True, layout="constrained")
for axis, (center, eigenvalues) in zip(axes, spectra.items(), strict=True):
    axis.semilogy(np.arange(1, len(eigenvalues) + 1), eigenvalues, color="#0072B2", marker=".", label="eigenvalues")
    for floor, colour in zip(floors, ("#009E73", "#D55E00"), strict=True):
        axis.axhline(floor, color=colour, linestyle="--", label=f"floor {floor:g}: {np.sum(eigenvalues >= floor)} kept")
    axis.set(title="spectrum, centred" if center else "spectrum, not centred", xlabel="number of the direction", ylim=(1e-12, 100))
    axis.legend()
plt.show()
