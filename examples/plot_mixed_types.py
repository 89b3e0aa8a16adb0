"""
Numbers and categories
======================

Records often mix numbers with categories. Here a press forms parts from three materials, each at its own temperature. A fault is a
temperature that suits another material: each column looks normal on its own, but the combination does not.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import refkernel as rk
from refkernel.plot import ScoreDistributionDisplay

TEMPERATURE = {"ABS": 230.0, "PC": 300.0, "PEEK": 370.0}


def records(n, seed, faulty=False):
    """n records of the press; in faulty ones the temperature belongs to another material."""
    rng = np.random.default_rng(seed)
    names = np.array(list(TEMPERATURE))
    material = rng.integers(3, size=n)
    set_for = (material + rng.integers(1, 3, size=n)) % 3 if faulty else material
    return pd.DataFrame(
        {
            "material": names[material],
            "shift": rng.choice(["day", "night"], size=n),
            "temperature": np.array(list(TEMPERATURE.values()))[set_for] + rng.normal(0.0, 8.0, size=n),
            "pressure": rng.normal(90.0, 5.0, size=n),
        }
    )


X_train = records(300, seed=0)
X_test = pd.concat([records(200, seed=11), records(100, seed=12, faulty=True)], ignore_index=True)
y_test = np.repeat([1, -1], [200, 100])
print(X_train.head(3).to_string())

# %%
# The pipeline
# ------------
# Categories become columns of 0 and 1; numbers pass through. ``TargetScaler`` then standardises all columns by the targets and drops
# constant ones. The kernel is narrow, since each material is a separate cluster; its width was chosen by hand.


def detector(*encoded):
    """The pipeline on the encoded categories and the two numbers."""
    encoder = OneHotEncoder(drop="if_binary", sparse_output=False)
    columns = make_column_transformer((encoder, list(encoded)), ("passthrough", ["temperature", "pressure"]))
    return make_pipeline(columns, rk.TargetScaler(), rk.SVDD(rk.RBF(scale=0.3), nu=0.05))


# %%
# With and without the material
# -----------------------------
# The shift says nothing about faults; the material, together with the temperature, says nearly everything.

figure, axes = plt.subplots(2, 1, figsize=(9, 6.4), sharex=True, layout="constrained")
for axis, encoded in zip(axes, [("shift",), ("material", "shift")], strict=True):
    model = detector(*encoded).fit(X_train)
    gmean = rk.metrics.gmean_score(y_test, model.predict(X_test))
    print(f"{', '.join((*encoded, 'temperature', 'pressure')):40} Gmean {gmean:.3f}")
    ScoreDistributionDisplay.from_estimator(model, X_test, y_test, ax=axis)
    axis.set(title=f"with {' and '.join(encoded)}", xlabel="" if axis is axes[0] else "decision value (accepted if ≥ 0)")
plt.show()
