"""
Which rows may I report?
========================

A p-value says how unusual one row is. But among 500 normal rows, about 25 have a p-value below 0.05. ``select`` judges a list as a
whole: on average, at most a share ``fdr`` of the rows it selects is normal.
"""

import matplotlib.pyplot as plt
import numpy as np

import refkernel as rk

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 4))
rows = np.vstack([rng.normal(size=(460, 4)), rng.normal(loc=2.6, size=(40, 4))])
is_outlier = np.repeat([False, True], [460, 40])

# %%
# p-values of a list
# ------------------
# ``method="split"`` is the one with a proof: 30 % of the rows calibrate, the others train. The p-values of normal rows are uniform; those
# of outliers are small.

detector = rk.ConformalDetector(rk.SVDD(rk.RBF(1.0)), method="split", random_state=0).fit(X)
p = detector.p_values(rows)
selected = {fdr: detector.select(rows, fdr=fdr) for fdr in (0.05, 0.1, 0.2)}
print(f"p <= 0.05: {np.sum(p <= 0.05)} rows, {np.mean(~is_outlier[p <= 0.05]):.0%} of them normal")
for fdr, chosen in selected.items():
    print(f"select(fdr={fdr:g}): {chosen.sum():3} rows, {np.mean(~is_outlier[chosen]):.0%} of them normal")

# %%
# Benjamini and Hochberg's line
# -----------------------------
# Rows in the order of their p-values. ``select`` takes all rows up to the last one below the line fdr · rank / 500.

order = np.argsort(p, kind="stable")
rank = np.arange(1, len(p) + 1)
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
left.hist([p[~is_outlier], p[is_outlier]], np.linspace(0, 1, 21), stacked=True, color=["#0072B2", "#D55E00"], label=["normal", "outliers"])
left.set(xlabel="p-value", ylabel="rows", title="Normal rows: uniform. Outliers: small")
left.legend()
for kind, colour, marker in ((False, "#0072B2", "o"), (True, "#D55E00", "x")):
    shown = is_outlier[order] == kind
    right.scatter(rank[shown], p[order][shown], s=18, c=colour, marker=marker, label="outliers" if kind else "normal")
right.plot(rank, 0.1 * rank / len(p), color="black", label="fdr 0.1")
count = int(selected[0.1].sum())
right.axvspan(0, count + 0.5, color="#F0E442", alpha=0.25, linewidth=0, label=f"selected: {count}")
right.set(xlim=(0, 90), ylim=(0, 0.09), xlabel="rank of the p-value", ylabel="p-value", title="select(rows, fdr=0.1)")
right.legend(loc="upper left")
plt.show()
