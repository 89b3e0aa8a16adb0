"""Made-up outliers: sources that compose with ``+``, for choosing a model when no outlier is known.

From the training rows alone, a source makes rows that should look wrong next to them. A new source is a subclass of
:class:`PseudoOutliers` with one ``draw(X, n, random_state)``. ``X`` is a numeric array or a pandas DataFrame; columns of text,
categories or booleans hold categories, and every category of a draw occurs in the training rows.

Examples
--------
>>> import numpy as np, refkernel as rk
>>> X = np.random.default_rng(0).normal(size=(40, 3))
>>> source = rk.pseudo_outliers.PermutedColumns() + rk.pseudo_outliers.Box()
>>> source.draw(X, 10, random_state=0).shape
(10, 3)
"""

from .sources import Box, Given, NeighbourNoise, PermutedColumns, PseudoOutliers, PushedOutward, Sum, SwappedColumns, as_pseudo_outliers

__all__ = [
    "Box",
    "Given",
    "NeighbourNoise",
    "PermutedColumns",
    "PseudoOutliers",
    "PushedOutward",
    "Sum",
    "SwappedColumns",
    "as_pseudo_outliers",
]
__dir__ = __all__.copy
