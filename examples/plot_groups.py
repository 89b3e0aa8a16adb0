"""
A rate for each group
=====================

Two machines deliver to one table, and one of them is twice as noisy. One threshold for both gives few alarms on the quiet machine and many
on the noisy one, and the quiet machine's faults are missed. With ``groups`` each machine keeps the rate by itself (Mondrian calibration;
Vovk, Gammerman and Shafer, 2005): the detector stays the same, and each group has its own threshold.
"""

import matplotlib.pyplot as plt
import numpy as np

import refkernel as rk

NOISE = {"press": 1.0, "saw": 2.0}


def draw(n, rng):
    """Normal rows of both machines, and the machine of each."""
    machine = rng.choice(list(NOISE), n)
    return rng.normal(size=(n, 4)) * np.array([NOISE[name] for name in machine])[:, None], machine


# %%
# One threshold, and one for each machine
# ---------------------------------------
# ``groups_`` says what each group is promised. A group of too few rows, or one that was not in ``fit``, takes the common threshold.

rng = np.random.default_rng(0)
X, machine = draw(800, rng)
new, of_new = draw(20_000, rng)
faults, of_faults = draw(2_000, rng)
faults += 3.0  # a shift of all columns

detector = rk.AutoDetector(false_alarm_rate=0.05).fit(X, groups=machine)
for name, promise in detector.groups_.items():
    print(f"{name}: {promise.rate:.1%} of {promise.n} rows, 90 % interval {promise.interval()[0]:.1%} to {promise.interval()[1]:.1%}")

flagged = {}
for name, groups, of_theirs in (("one threshold", None, None), ("one for each machine", of_new, of_faults)):
    false_alarms, caught = detector.predict(new, groups=groups) == -1, detector.predict(faults, groups=of_theirs) == -1
    flagged[name] = [(100 * false_alarms[of_new == each].mean(), 100 * caught[of_faults == each].mean()) for each in NOISE]
    for each, (alarms, found) in zip(NOISE, flagged[name], strict=True):
        print(f"{name}, {each}: {alarms:.1f} % of normal rows are flagged, and {found:.0f} % of the faults")

# %%
# The picture
# -----------
# p-values of normal rows of one machine are uniform only if they are ranks among the rows of that machine.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
colours = {"press": "#0072B2", "saw": "#D55E00"}
for ax, groups, title in ((left, None, "p-values by one threshold"), (middle, of_new, "p-values by machine")):
    p = detector.p_values(new, groups=groups)
    for name, colour in colours.items():
        ax.hist(p[of_new == name], np.linspace(0, 1, 21), density=True, histtype="step", linewidth=1.8, color=colour, label=name)
    ax.axhline(1.0, color="black", linestyle=":")
    ax.set(xlabel="p-value of normal rows", ylabel="density", ylim=(0, 3.2), title=title)
left.legend()
for place, pairs in enumerate(flagged.values()):
    for column, each in enumerate(NOISE):
        bar = right.bar(place + 0.4 * column - 0.2, pairs[column][0], 0.36, color=colours[each], label=each if place == 0 else None)
        right.bar_label(bar, fmt="%.1f")
right.axhline(5.0, color="black", linestyle=":", label="promised")
right.set(xticks=[0, 1], xticklabels=flagged, ylabel="normal rows flagged, %", title="False alarms by machine")
right.set_ylim(0, 10.5)
right.legend(loc="upper right")
plt.show()
