"""
Nothing to choose
=================

``AutoDetector`` takes normal rows and a false-alarm rate. Here benign tumours are normal, and training never sees a malignant one.
You can move the threshold without refitting.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import refkernel as rk

X, benign = load_breast_cancer(return_X_y=True)
normal, other = np.random.default_rng(0).permutation(X[benign == 1]), X[benign == 0]
train, new = normal[:250], normal[250:]
detector = rk.AutoDetector(false_alarm_rate=0.05).fit(train)
print(detector.choice_)

# %%
# One fit, three rates
# --------------------
# ``with_false_alarm_rate`` returns a detector with another threshold. A lower rate misses more outliers; the table shows how many.

rates = (0.01, 0.05, 0.2)
detectors = {rate: detector.with_false_alarm_rate(rate) for rate in rates}
print(f"{'asked':>8}{'new benign flagged':>22}{'malignant flagged':>20}")
for rate, moved in detectors.items():
    print(f"{rate:8.0%}{np.mean(moved.predict(new) == -1):22.1%}{np.mean(moved.predict(other) == -1):20.1%}")

# %%
# Where the thresholds are
# ------------------------
# Scores are minus the evidence: how rarely a normal row that was left out of training looks this unusual. 0 is the highest score, and every
# threshold is a rank among the normal rows.

figure, axis = plt.subplots(figsize=(9, 4.2), layout="constrained")
groups = (detector.score_samples(new), detector.score_samples(other))
bins = np.linspace(min(map(np.min, groups)), 0, 40)
axis.hist(groups[0], bins, color="#0072B2", alpha=0.75, label=f"{len(new)} new benign")
axis.hist(groups[1], bins, color="#D55E00", alpha=0.75, label=f"{len(other)} malignant")
for (rate, moved), style in zip(detectors.items(), (":", "--", "-"), strict=True):
    axis.axvline(moved.offset_, color="black", linestyle=style, label=f"threshold at {rate:.0%}")
axis.set(xlabel="score (lower is more unusual)", ylabel="rows", title="Normal rows train; you choose the share of new normal rows to flag")
axis.legend()
plt.show()
