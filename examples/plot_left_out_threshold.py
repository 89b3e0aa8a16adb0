"""
A threshold for new samples
===========================

With a narrow kernel nearly every training sample lies on the boundary, so a threshold that leaves 10 % of *them* outside leaves most
*new* samples outside. ``threshold="loo"`` scores each training sample by the model without it, exactly, at the price of a few fits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import refkernel as rk
from refkernel.plot import DecisionRegionDisplay

moons, _ = make_moons(4000, noise=0.1, random_state=0)
trainings, new = np.split(moons[:600], 4), moons[1000:]
scales = np.geomspace(0.003, 3.0, 8)

# %%
# Rejected new samples by width
# -----------------------------
# nu = 0.1 everywhere, four training sets of 150 samples. The dotted line is what was asked for.


def share_rejected(scale, rule):
    """The share of new samples that is rejected, on average over the training sets."""
    model = rk.SVDD(rk.RBF(scale=scale), nu=0.1, threshold=rule)
    return np.mean([np.mean(model.fit(X).predict(new) == -1) for X in trainings])


rejected = {rule: [share_rejected(scale, rule) for scale in scales] for rule in ("training", "loo")}
print(f"{'scale':>8}{'training':>12}{'loo':>8}")
for k, scale in enumerate(scales):
    print(f"{scale:8.3f}{rejected['training'][k]:12.1%}{rejected['loo'][k]:8.1%}")

# %%
# The picture
# -----------
# In the middle and on the right the same narrow kernel with both thresholds, and 300 of the new samples.

figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
for (rule, shares), colour, marker in zip(rejected.items(), ("#D55E00", "#0072B2"), "so", strict=True):
    axes[0].semilogx(scales, 100 * np.array(shares), color=colour, marker=marker, label=f'threshold="{rule}"')
axes[0].axhline(10, color="black", linestyle=":")
axes[0].set(xlabel="scale of the kernel's width", ylabel="new samples rejected, %", title="nu = 0.1")
axes[0].legend()
for axis, rule in zip(axes[1:], rejected, strict=True):
    model = rk.SVDD(rk.RBF(scale=0.01), nu=0.1, threshold=rule).fit(trainings[0])
    DecisionRegionDisplay.from_estimator(model, new[:300], ax=axis, grid=160, legend=False)
    axis.set(title=f'scale 0.01, "{rule}": {np.mean(model.predict(new) == -1):.0%} rejected', xlabel="", ylabel="")
plt.show()
