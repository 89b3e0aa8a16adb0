"""
A ball, an ellipsoid, a residual
================================

Three ways to describe the same samples in the space of the same reference map: the smallest ball (``SVDD``), the smallest ellipsoid of
the samples' own shape (``ESVDD``), and the distance from the span of the references (``ReferenceResidual``).
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline

import refkernel as rk
from refkernel.plot import DecisionRegionDisplay

rng = np.random.default_rng(0)
angle = rng.uniform(0, 1.5 * np.pi, size=150)
X = np.column_stack([2.0 * np.cos(angle), np.sin(angle)]) + 0.12 * rng.normal(size=(150, 2))
references = rk.references.Subset(40)

# %%
# In the plane, and on features
# -----------------------------
# In plain coordinates the ball and the ellipsoid look like their names. On the features of a reference map they follow the samples.

features = rk.ReferenceMap(rk.RBF(scale=0.3), references, random_state=0)
models = {
    "ball: SVDD, linear": rk.SVDD("linear", nu=0.1),
    "ellipsoid: ESVDD": rk.ESVDD(nu=0.1),
    "ball on features": make_pipeline(features, rk.SVDD("linear", nu=0.1)),
    "ellipsoid on features": make_pipeline(features, rk.ESVDD(nu=0.1, regularization=0.1)),
    "residual, all directions": rk.ReferenceResidual(rk.RBF(scale=0.3), references, nu=0.1, random_state=0),
    "residual, 12 directions": rk.ReferenceResidual(rk.RBF(scale=0.3), references, nu=0.1, rank=12, random_state=0),
}
figure, axes = plt.subplots(2, 3, figsize=(13, 6.4), sharex=True, sharey=True, layout="constrained")
box = rng.uniform([-3, -2], [3, 2], size=(4000, 2))
print(f"{'description':28}{'samples inside':>16}{'share of the box':>18}")
for axis, (name, model) in zip(axes.T.flat, models.items(), strict=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", rk.FarSamplesWarning)
        model.fit(X)
    print(f"{name:28}{np.mean(model.predict(X) == 1):16.0%}{np.mean(model.predict(box) == 1):18.0%}")
    DecisionRegionDisplay.from_estimator(model, X, ax=axis, grid=140, legend=False)
    axis.set(title=name, xlabel="", ylabel="")
plt.show()
