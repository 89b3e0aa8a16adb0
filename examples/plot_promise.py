"""
Asked for, and delivered
========================

Other detectors take ``contamination``, a share of the *training* rows. ``ConformalDetector`` wraps any detector and takes a share of
*new* normal rows instead. Both are asked for rates from 2 % to 30 %, on 60 rows, 25 times.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import LocalOutlierFactor

import refkernel as rk

WISHES = np.array([0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3])
REPEATS, N = 25, 60

# %%
# The measurement
# ---------------
# The same detector runs once with its own threshold and once wrapped. The wrapper rejects rows whose p-value is at most the rate, so one
# fit serves all rates.

own, promised = np.empty((REPEATS, len(WISHES))), np.empty((REPEATS, len(WISHES)))
for repeat in range(REPEATS):
    rng = np.random.default_rng(repeat)
    X, new = rng.normal(size=(N, 5)), rng.normal(size=(1000, 5))
    scores = LocalOutlierFactor(novelty=True).fit(X)
    wrapped = rk.ConformalDetector(LocalOutlierFactor(novelty=True), 0.1, random_state=0).fit(X)
    training = -np.asarray(scores.negative_outlier_factor_)
    values = -scores.score_samples(new)
    own[repeat] = [np.mean(values > np.quantile(training, 1 - wish)) for wish in WISHES]  # what contamination=wish does
    promised[repeat] = np.mean(wrapped.p_values(new)[:, None] <= WISHES, axis=0)

print(f"{'asked for':>10}{'contamination':>16}{'ConformalDetector':>20}")
for column, wish in enumerate(WISHES):
    print(f"{wish:10.0%}{own[:, column].mean():16.1%}{promised[:, column].mean():20.1%}")

# %%
# The picture
# -----------
# The band holds four fifths of the 25 training sets: a promise about the average is not a promise about each one. ``confidence=0.9`` makes
# a promise about the threshold you actually get.

figure, axis = plt.subplots(figsize=(6.4, 5.6), layout="constrained")
for rejected, colour, marker, name in ((own, "#D55E00", "s", "contamination"), (promised, "#0072B2", "o", "ConformalDetector")):
    low, high = np.quantile(rejected, [0.1, 0.9], axis=0)
    axis.fill_between(100 * WISHES, 100 * low, 100 * high, color=colour, alpha=0.18, linewidth=0)
    axis.plot(100 * WISHES, 100 * rejected.mean(axis=0), color=colour, marker=marker, label=name)
axis.plot([0, 32], [0, 32], color="black", linestyle=":", label="as asked")
axis.set(xlabel="asked for, % of new normal rows", ylabel="rejected, % of new normal rows", title="LocalOutlierFactor, 60 training rows")
axis.legend()
plt.show()
