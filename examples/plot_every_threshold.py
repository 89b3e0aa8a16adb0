"""
Every threshold at once
=======================

A report has a slider for the threshold. Whoever moves it looks at the flagged rows and stops where they please. An interval for one
threshold no longer holds then: it was made for a threshold chosen before looking. ``false_alarm_band`` bounds the rates of all thresholds
together, so that its bounds hold wherever the slider stops.
"""

import matplotlib.pyplot as plt
import numpy as np

import refkernel as rk

# %%
# What looking costs
# ------------------
# The rates of n thresholds are those of n uniform numbers. In how many of 500 tables does one of the thresholds flag more than its bound
# says? Bounds for single thresholds are exceeded somewhere in more than a third of the tables, those of the band in about 1 of 40.

N = 600
rng = np.random.default_rng(0)
single = np.array([rk.calibration.Promise(N, rank, rank / (N + 1)).interval(0.95)[1] for rank in range(1, N + 1)])
together = rk.calibration.FalseAlarmBand(np.arange(float(N))).at(p_value=np.arange(1, N + 1) / (N + 1))[1]
rates = np.sort(rng.random((500, N)), axis=1)
for name, bound in (("of each threshold alone", single), ("of the band", together)):
    print(f"upper bounds {name}: exceeded somewhere in {np.mean((rates > bound).any(axis=1)):.1%} of the tables")

# %%
# A table with anomalies
# ----------------------
# 600 normal rows train the detector, and 40 of 200 new rows are anomalies. Ten folds calibrate, so there are upper bounds only: rows
# that were left out look a little less normal than new ones. ``wrong_share`` bounds the normal rows among those that are called outliers,
# wherever the list is cut.

detector = rk.AutoDetector().fit(rng.normal(size=(N, 3)))
rows = np.vstack([rng.normal(size=(160, 3)), rng.normal(3.5, 1.0, size=(40, 3))])
scores = detector.score_samples(rows)
order = np.argsort(scores)
band = detector.false_alarm_band(confidence=0.95)
wrong = band.wrong_share(scores)[order]
called = np.arange(1, len(rows) + 1)
truly = np.cumsum(order < 160) / called
for count in (10, 20, 40):
    print(f"the first {count}: at most {wrong[count - 1]:.0%} are normal (in truth {truly[count - 1]:.0%})")

# %%
# The picture
# -----------
# The dotted line is what each threshold is expected to flag, the curve what it does flag of 20,000 new normal rows.

p = np.linspace(0.005, 0.3, 120)
measured = (detector.p_values(rng.normal(size=(20_000, 3)))[:, None] <= p).mean(axis=0)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
left.fill_between(100 * p, 0.0, 100 * band.at(p_value=p)[1], color="#C4E4F7", label="band: holds for all thresholds (95 %)")
left.plot(100 * p, 100 * measured, color="#0072B2", label="delivered")
left.plot(100 * p, 100 * p, color="black", linestyle=":", label="expected")
left.set(xlabel="p-value up to which rows are flagged, %", ylabel="new normal rows flagged, %", xlim=(0, 30), ylim=(0, None))
left.set_title("Wherever the slider stops")
left.legend(loc="upper left")
right.plot(called, 100 * wrong, color="#0072B2", drawstyle="steps-post", label="at most (95 %)")
right.plot(called, 100 * truly, color="#D55E00", drawstyle="steps-post", label="in truth")
right.set(xlabel="rows called outliers, the worst first", ylabel="normal rows among them, %", xlim=(0, 100), ylim=(0, 103))
right.set_title("Wherever the list is cut")
right.legend(loc="upper right")
plt.show()
