"""
A detector in operation
=======================

The means of three columns rise by a standard deviation within a year. ``Monitor`` raises an alarm at a proven level, and a review every
four weeks renews the threshold: the share of normal rows that are rejected stays near the promised 5 %, where it would rise to a quarter.
"""

import matplotlib.pyplot as plt
import numpy as np

import refkernel as rk

WEEKS, ROWS = 52, 100
rng = np.random.default_rng(0)
detector = rk.AutoDetector().fit(rng.normal(size=(600, 3)))

# %%
# A year
# ------
# Two percent of the rows are anomalies. Every four weeks somebody says which rows these were, and all others join the calibration.

monitor = rk.Monitor(detector, window=4 * ROWS)
highest, rejected = [], []
anomalies: list[int] = []
for week in range(WEEKS):
    X, is_anomaly = rng.normal(size=(ROWS, 3)) + week / WEEKS, rng.random(ROWS) < 0.02
    X[is_anomaly] += rng.choice([-6.0, 6.0], size=(is_anomaly.sum(), 3))
    seen = monitor.update(X)
    anomalies += seen.rows[is_anomaly].tolist()
    highest.append(monitor.history_[-1, 2] / np.log(10))
    rejected.append([np.mean(model.predict(X[~is_anomaly]) == -1) for model in (detector, monitor.detector_)])
    if week % 4 == 3:
        monitor.review(anomalies)
        anomalies = []
rejected = 100 * np.array(rejected)
print(f"Normal rows rejected in the last quarter: {rejected[39:, 0].mean():.1f} % as fitted, {rejected[39:, 1].mean():.1f} % with reviews")

# %%
# The picture
# -----------
# Above, means of four weeks. Below, the evidence that rows are less normal than those that calibrate, which begins anew with each review:
# as fast as this plant moves, four weeks are enough for some alarms.

figure, axes = plt.subplots(2, 1, figsize=(7, 6), sharex=True, layout="constrained")
weeks = np.arange(1, WEEKS + 1)
for column, (colour, name) in enumerate((("#D55E00", "as it was fitted"), ("#0072B2", "with a review every four weeks"))):
    axes[0].plot(weeks[3::4], rejected[:, column].reshape(-1, 4).mean(axis=1), marker="o", color=colour, label=name)
axes[0].axhline(5.0, color="black", linestyle=":", label="promised")
axes[0].set(ylabel="normal rows rejected, %", ylim=(0, None))
axes[0].legend()
axes[1].plot(weeks, highest, color="#0072B2", drawstyle="steps-mid")
axes[1].axhline(np.log10(20.0), color="#D55E00", linestyle="--", label="alarm (level 5 %)")
for week in range(4, WEEKS, 4):
    axes[1].axvline(week + 0.5, color="grey", linewidth=0.5)
axes[1].set(xlabel="week; grey lines are reviews", ylabel="highest evidence, power of ten")
axes[1].legend()
plt.show()
