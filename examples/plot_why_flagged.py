"""
Why is this row flagged?
========================

A flag without a reason helps nobody. ``rk.explain`` splits the score of a row exactly among its columns, and ``rk.counterfactuals`` says
which value of a single column would have made the row normal.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine

import refkernel as rk
from refkernel.plot import ExplanationDisplay

wine = load_wine(as_frame=True)
normal = wine.data[wine.target == 1]
row = normal.iloc[[7]].copy()
detector = rk.AutoDetector(false_alarm_rate=0.1).fit(normal.drop(index=row.index))

# %%
# A typing error
# --------------
# A new row, with its alcohol content typed ten times too large.

row["alcohol"] *= 10
why = rk.explain(detector, row)
print(f"label {detector.predict(row)[0]}, p = {detector.p_values(row)[0]:.3f}")
print(f"the values add up to the score: {np.allclose(why.values.sum(axis=1) + why.baseline, detector.score_samples(row))}")
print(f"the column that counts most against the row: {why.names[why.worst(1)[0, 0]]}")
print(rk.counterfactuals(detector, row).sentences()[0][0])

# %%
# The picture
# -----------
# What each column adds to the score. Bars to the left count against the row.

ExplanationDisplay.from_estimator(detector, row)
plt.show()
