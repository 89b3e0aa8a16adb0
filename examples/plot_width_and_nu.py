"""
What the width and nu do
========================

Two numbers shape a one-class SVM or an SVDD. The width decides how closely the boundary follows the samples; nu decides how many
training samples it may leave outside.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import refkernel as rk
from refkernel.plot import DecisionRegionDisplay

X, _ = make_moons(120, noise=0.1, random_state=0)
scales, nus = (0.03, 0.3, 3.0), (0.02, 0.1, 0.4)

# %%
# Nine descriptions
# -----------------
# ``scale`` is relative to the data: sigma² is the scale times the mean squared distance between two samples. ``threshold="training"`` is
# the classical rule, in which nu bounds the share of training samples outside.

figure, axes = plt.subplots(3, 3, figsize=(11, 7.6), sharex=True, sharey=True, layout="constrained")
print(f"{'scale':>8}{'nu':>8}{'outside':>10}{'support vectors':>18}")
for row, scale in enumerate(scales):
    for column, nu in enumerate(nus):
        model = rk.SVDD(rk.RBF(scale=scale), nu=nu, threshold="training").fit(X)
        outside, support = np.mean(model.predict(X) == -1), len(model.support_) / len(X)
        print(f"{scale:8g}{nu:8g}{outside:10.0%}{support:18.0%}")
        axis = axes[row, column]
        DecisionRegionDisplay.from_estimator(model, X, ax=axis, grid=120, legend=False)
        axis.set(title=f"nu = {nu:g}: {outside:.0%} outside, {support:.0%} support", xlabel="", ylabel="")
    axes[row, 0].set_ylabel(f"scale = {scale:g}")

# %%
# From top to bottom the kernel gets wider and the region rounder. With a narrow kernel nearly every sample is a support vector. The
# training samples then say little about new ones, and ``threshold="loo"`` is the remedy.

plt.show()
