"""
Numbers and categories
======================

Records often mix numbers with categories. Here a press forms parts from three materials, each at its own temperature. A fault is a
temperature that suits another material: each column looks normal on its own, but the combination does not.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

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
# The detector
# ------------
# ``TableDetector`` takes the data frame as it is: numbers, text, truth values, dates and missing cells. It needs no settings.


def detector():
    """The detector."""
    return rk.TableDetector()


# %%
# With and without the material
# -----------------------------
# The shift says nothing about faults; the material, together with the temperature, says nearly everything.

figure, axes = plt.subplots(2, 1, figsize=(9, 6.4), sharex=True, layout="constrained")
for axis, encoded in zip(axes, [["shift"], ["material", "shift"]], strict=True):
    columns = [*encoded, "temperature", "pressure"]
    model = detector().fit(X_train[columns])
    gmean = rk.metrics.gmean_score(y_test, model.predict(X_test[columns]))
    print(f"{', '.join(columns):40} Gmean {gmean:.3f}")
    ScoreDistributionDisplay.from_estimator(model, X_test[columns], y_test, ax=axis)
    axis.set(title=f"with {' and '.join(encoded)}", xlabel="" if axis is axes[0] else "decision value (accepted if ≥ 0)")
plt.show()

# %%
# Why is a record flagged?
# ------------------------
# ``explain`` names the columns of the data frame: each category is one of them, however many columns it was encoded as.

faulty = X_test[y_test == -1]
why = rk.explain(model, faulty)
first = [why.names[worst] for worst in why.worst(1)[:, 0]]
print(pd.Series(first, name="first reason").value_counts().to_string())
