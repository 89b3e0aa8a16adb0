"""Rows that are not held in memory: arrays on disk, Parquet files, iterators of blocks, Dask collections.

Estimators take what :func:`open` returns wherever they take an array, and read it block by block, as often as they need.

Examples
--------
>>> import numpy as np, refkernel as rk
>>> X = np.random.default_rng(0).normal(size=(5000, 3))
>>> source = rk.sources.open(lambda: (X[i : i + 1000] for i in range(0, 5000, 1000)))
>>> model = rk.SVDD(rk.ReferenceKernel(references=rk.references.Subset(50)), random_state=0).fit(source)
>>> model.predict(source).shape
(5000,)
"""

from .base import Source
from .opening import as_source, is_source, open

__all__ = ["Source", "as_source", "is_source", "open"]


def __dir__() -> list[str]:
    return __all__
