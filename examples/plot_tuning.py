"""
Tuning by cross-validation
==========================

The width of the kernel and nu decide how good a description is. ``OneClassGridSearch`` tries all pairs, with known outliers in
the folds that score but never in those that train. Test samples that the search has not seen then show how good the choice is.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import refkernel as rk
from refkernel.plot import PathDisplay

task = rk.datasets.load_task("Seed2")
scales, nus = [0.3, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0], [0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4]
model = rk.SVDD(rk.ReferenceKernel(rk.RBF(), references="case2"))
grid = {"kernel__kernel__scale": scales, "nu": nus}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", rk.FarSamplesWarning)  # raised by some candidates; search.cv_results_["doubts"] says which
    search = rk.OneClassGridSearch(model, grid, cv=5, random_state=0).fit(task.X_train, task.y_train)

# %%
# The result
# ----------
# The best score of the search is the highest of 56, and therefore optimistic. The test score is not: it is computed once, for the
# chosen model.

best = search.best_params_
print(f"Chosen of {len(search.cv_results_['params'])}: scale {best['kernel__kernel__scale']:g}, nu {best['nu']:g}")
print(f"Gmean in cross-validation   {search.best_score_:.3f}")
print(f"Gmean on the test samples   {search.score(task.X_test, task.y_test):.3f}")
untuned = rk.SVDD().fit(task.X_train, task.y_train)
print(f"Defaults, on the same       {rk.metrics.gmean_score(task.y_test, untuned.predict(task.X_test)):.3f}")

# %%
# The whole grid
# --------------
# ``cv_results_`` is laid out as in ``GridSearchCV``: the last parameter varies fastest. A broad plateau is good news, a lone peak
# is likely to be luck. A kernel too narrow for its references sees little of what lies between and beyond them, and accepts it.

table = search.cv_results_["mean_test_score"].reshape(len(scales), len(nus))
figure, axis = plt.subplots(figsize=(8, 4.6), layout="constrained")
image = axis.imshow(table, origin="lower", aspect="auto", cmap="cividis")
axis.set(xlabel="nu", ylabel="scale of the kernel's width", title="Gmean in cross-validation")
axis.set_xticks(range(len(nus)), [f"{nu:g}" for nu in nus])
axis.set_yticks(range(len(scales)), [f"{scale:g}" for scale in scales])
middle = 0.5 * (table.min() + table.max())
for (row, column), value in np.ndenumerate(table):
    axis.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color="white" if value < middle else "black")
row, column = np.unravel_index(search.best_index_, table.shape)
axis.add_patch(plt.Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="#D55E00", linewidth=3))
figure.colorbar(image, ax=axis)

# %%
# What nu does
# ------------
# Along nu, with the chosen width: nu lies between the share of rejected training targets and the share of support vectors. The rates
# are measured on the training samples; they show the trade-off between targets and outliers.

figure, axis = plt.subplots(figsize=(8, 4.6), layout="constrained")
path = PathDisplay.from_estimator(search, task.X_train, task.y_train, ax=axis)
held = np.all(path.rejected <= path.bound + 1e-9) and np.all(path.support >= path.bound - 1e-9)  # shares are rounded sums
print(f"rejected targets <= nu <= support vectors, for all {len(path.values)} values of nu: {held}")
plt.show()
