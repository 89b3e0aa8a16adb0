"""
Choosing without labels
=======================

Without known outliers, ``OneClassGridSearch`` scores candidates on held-out normal rows and made-up outliers. Here we know the true
outliers but hide them from the search, so we can compare its choice with the choice it would have made had it seen them.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import refkernel as rk

task = rk.datasets.load_task("Ion2")
targets = task.X_train[task.y_train == 1]
scales, nus = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0], [0.02, 0.05, 0.1, 0.2, 0.3]
grid = {"kernel__scale": scales, "nu": nus}
model = rk.SVDD(rk.RBF(), threshold="loo")

# %%
# The search sees targets only
# ----------------------------

with warnings.catch_warnings():
    warnings.simplefilter("ignore", rk.FarSamplesWarning)
    search = rk.OneClassGridSearch(model, grid, random_state=0).fit(targets)
believed = search.cv_results_["mean_test_score"].reshape(len(scales), len(nus))

# %%
# The truth, for comparison
# -------------------------
# The Gmean of every candidate on test samples with real outliers: a table that nobody has in practice.

true = np.empty_like(believed)
for row, scale in enumerate(scales):
    for column, nu in enumerate(nus):
        fitted = rk.SVDD(rk.RBF(scale=scale), nu=nu, threshold="loo").fit(targets)
        true[row, column] = rk.metrics.gmean_score(task.y_test, fitted.predict(task.X_test))
chosen = np.unravel_index(search.best_index_, believed.shape)
print(f"chosen without labels: scale {scales[chosen[0]]:g}, nu {nus[chosen[1]]:g}")
print(f"its Gmean on the test samples {true[chosen]:.3f}; the best of the grid {true.max():.3f}, the middle one {np.median(true):.3f}")

figure, axes = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained")
for axis, table, title in zip(
    axes, (believed, true), ("what the search saw: made-up outliers", "the truth: Gmean, real outliers"), strict=True
):
    image = axis.imshow(table, origin="lower", aspect="auto", cmap="cividis")
    axis.set(xlabel="nu", ylabel="scale", title=title)
    axis.set_xticks(range(len(nus)), [f"{nu:g}" for nu in nus])
    axis.set_yticks(range(len(scales)), [f"{scale:g}" for scale in scales])
    for (row, column), value in np.ndenumerate(table):
        axis.text(column, row, f"{value:.2f}", ha="center", va="center", color="white" if value < table.mean() else "black", fontsize=8)
    axis.add_patch(plt.Rectangle((chosen[1] - 0.5, chosen[0] - 0.5), 1, 1, fill=False, edgecolor="#D55E00", linewidth=3))
    figure.colorbar(image, ax=axis)
plt.show()
