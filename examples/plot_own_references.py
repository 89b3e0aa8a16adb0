"""
References of your own
======================

A reference kernel sees samples through their kernel values against references, and a strategy is an object that draws these references.
The one below draws targets and shakes them a little. Three built-in strategies are shown for comparison.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import refkernel as rk
from refkernel.plot import DecisionRegionDisplay

# %%
# One draw
# --------
# A strategy has one method. ``rows`` holds the samples ``X`` of this fit and the row numbers of its ``targets`` and ``outliers``;
# ``rows.count`` turns a size (a count, or a part of the targets) into a number. All randomness comes from ``random_state``. The result
# names the training row that each reference is, or ``GENERATED``.


class Shaken(rk.references.Strategy):
    """Targets drawn with replacement, each moved by N(0, noise²) in every feature: draws from a density estimate of the targets."""

    def __init__(self, size=0.5, noise=0.2):
        self.size = size
        self.noise = noise

    def draw(self, rows, random_state):
        m = rows.count(self.size)
        X = rows.X[random_state.choice(rows.targets, m)]
        vectors = X + self.noise * random_state.standard_normal(X.shape)
        return rk.references.References(vectors, np.full(m, rk.references.GENERATED))


# %%
# Side by side
# ------------
# Each strategy draws 30 references for the same 100 targets. The kernel is narrow, so it matters where they are; its width was
# chosen by hand, on other draws than the test set's 200 new targets and 200 uniform points. What a strategy is worth depends on the
# data: ``references`` is a parameter like others, and a grid search can choose it.

X, _ = make_moons(100, noise=0.08, random_state=0)
X_new, _ = make_moons(200, noise=0.08, random_state=11)
X_test = np.vstack([X_new, np.random.default_rng(12).uniform([-1.6, -1.1], [2.6, 1.6], size=(200, 2))])
y_test = np.repeat([1, -1], 200)
strategies = {
    "own: Shaken(30)": Shaken(30),
    "KMeans(30)": rk.references.KMeans(30),
    "Uniform(30)": rk.references.Uniform(30),
    "FarthestFirst(30)": rk.references.FarthestFirst(30),
}
figure, axes = plt.subplots(2, 2, figsize=(11, 6.4), sharex=True, sharey=True, layout="constrained")
print(f"{'references':20}{'rank':>6}{'TPR':>8}{'TNR':>8}{'Gmean':>8}")
for axis, (name, strategy) in zip(axes.flat, strategies.items(), strict=True):
    kernel = rk.ReferenceKernel(rk.RBF(scale=0.05), references=strategy, center=False, random_state=0)
    model = rk.OneClassSVM(kernel, nu=0.1).fit(X)
    tpr, tnr = rk.metrics.true_rates(y_test, model.predict(X_test))
    print(f"{name:20}{model.kernel_.rank_:6}{tpr:8.3f}{tnr:8.3f}{np.sqrt(tpr * tnr):8.3f}")
    DecisionRegionDisplay.from_estimator(model, X, ax=axis, legend=axis in axes[:, 1])
    axis.set(title=name, xlabel="", ylabel="")

# %%
# Strategies add up: ten centres of k-means, then ten shaken targets.

both = rk.ReferenceMap(references=rk.references.KMeans(10) + Shaken(10), random_state=0).fit(X)
print(f"KMeans(10) + Shaken(10): {len(both.references_)} references")
plt.show()
