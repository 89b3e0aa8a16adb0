"""
Outliers that nobody marked
===========================

Novelty detection trains on normal rows. If outliers hide among them, the detector learns them as normal. With ``contamination`` it leaves
out the least normal rows first. The best remedy is still to clean the rows.
"""

import matplotlib.pyplot as plt
import numpy as np

import refkernel as rk
from refkernel.plot import DecisionRegionDisplay

rng = np.random.default_rng(0)
normal = np.vstack([rng.normal([-2, 0], 0.6, size=(120, 2)), rng.normal([2, 0], 0.6, size=(120, 2))])
hidden = rng.uniform([-5, -4], [5, 4], size=(12, 2))
X = np.vstack([normal, hidden])
new = np.vstack([rng.normal([-2, 0], 0.6, size=(500, 2)), rng.normal([2, 0], 0.6, size=(500, 2))])
strange = rng.uniform([-5, -4], [5, 4], size=(1000, 2))

# %%
# Three detectors of 252 rows, 12 of them hidden outliers
# -------------------------------------------------------
# The first knows nothing about the outliers. The second knows their share. The third gets clean rows.

detectors = {
    "told nothing": rk.AutoDetector(0.05).fit(X),
    "contamination=0.05": rk.AutoDetector(0.05, contamination=0.05).fit(X),
    "clean rows": rk.AutoDetector(0.05).fit(normal),
}
figure, axes = plt.subplots(1, 3, figsize=(13, 4), sharex=True, sharey=True, layout="constrained")
print(f"{'':22}{'new normal flagged':>20}{'points of the box flagged':>28}")
for axis, (name, detector) in zip(axes, detectors.items(), strict=True):
    alarms, found = np.mean(detector.predict(new) == -1), np.mean(detector.predict(strange) == -1)
    print(f"{name:22}{alarms:20.1%}{found:28.1%}")
    DecisionRegionDisplay.from_estimator(detector, normal, ax=axis, grid=110, legend=False)
    axis.scatter(*hidden.T, marker="x", c="#D55E00", s=40)
    axis.set(title=f"{name}: {found:.0%} of the box flagged", xlabel="", ylabel="", xlim=(-5, 5), ylim=(-4, 4))
plt.show()
