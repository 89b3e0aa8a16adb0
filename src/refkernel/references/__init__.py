"""Where references come from: strategies that compose with ``+``.

A strategy draws the references R (m × d) for one fit from the training rows and a random state. A new
strategy is a subclass with one method, ``draw``. A size is a fraction of the n targets (rounded down), a count, or a
name, where q is the number of outliers: ``"balanced"`` (the article's T = min(n, q)), ``"outliers"`` (q),
``"rounded_half"`` (n/2, rounded up).

Examples
--------
>>> import numpy as np, refkernel as rk
>>> X = np.random.default_rng(0).normal(size=(40, 3))
>>> inside_and_around = rk.references.KMeans(10) + rk.references.Shell(0.5)
>>> rk.ReferenceMap(references=inside_and_around, random_state=0).fit(X).references_.shape
(30, 3)
"""

from .base import GENERATED, Given, References, ReferencesLike, Strategy, Sum, as_strategy
from .named import Auto, case
from .strategies import FarthestFirst, KMeans, LeverageScores, Negatives, Normal, NormalLike, Pushed, Shell, Subset, Training, Uniform

__all__ = [
    "GENERATED",
    "Auto",
    "FarthestFirst",
    "Given",
    "KMeans",
    "LeverageScores",
    "Negatives",
    "Normal",
    "NormalLike",
    "Pushed",
    "References",
    "ReferencesLike",
    "Shell",
    "Strategy",
    "Subset",
    "Sum",
    "Training",
    "Uniform",
    "as_strategy",
    "case",
]
__dir__ = __all__.copy
