"""
The least normal threes
=======================

Images are rows of pixels. We train a detector on handwritten threes and then let it judge other images. The p-value of a three tells how
odd it is, and the digits that pass for a three are the ones that look like it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import refkernel as rk

X, digit = load_digits(return_X_y=True)
threes, others = X[digit == 3], X[digit != 3]
train, new = threes[::2], threes[1::2]
detector = rk.AutoDetector(false_alarm_rate=0.05).fit(train)

# %%
# Who passes for a three?
# -----------------------

flagged = detector.predict(others) == -1
print(f"new threes flagged: {np.mean(detector.predict(new) == -1):.1%} (asked for {detector.false_alarm_rate:.0%})")
for other in np.unique(digit[digit != 3]):
    print(f"  {other} passes for a three: {np.mean(~flagged[digit[digit != 3] == other]):5.1%}")

# %%
# Three rows of images
# --------------------
# Each image with its p-value: the share of left-out training threes that look at least as odd.

score, score_others = detector.score_samples(new), detector.score_samples(others)
rows = {
    "the most normal new threes": new[np.argsort(-score, kind="stable")[:10]],
    "the least normal new threes": new[np.argsort(score, kind="stable")[:10]],
    "other digits, the most like a three": others[np.argsort(-score_others, kind="stable")[:10]],
}
figure, axes = plt.subplots(3, 10, figsize=(11, 4.6), layout="constrained")
for line, (name, images) in zip(axes, rows.items(), strict=True):
    for axis, image, p in zip(line, images, detector.p_values(images), strict=True):
        axis.imshow(image.reshape(8, 8), cmap="gray_r")
        axis.set(xticks=[], yticks=[])
        axis.set_title(f"p = {p:.2f}", fontsize=9, color="#D55E00" if p <= detector.false_alarm_rate else "black")
    line[0].set_ylabel("\n".join([name[: len(name) // 2 + 1], name[len(name) // 2 + 1 :]]) if len(name) > 40 else "", fontsize=8)
    line[4].set_xlabel(name, fontsize=11)
plt.show()
