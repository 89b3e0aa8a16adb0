"""Rows that are not held in memory: arrays on disk, Parquet files, iterators of blocks, Dask collections.

Estimators take what :func:`open_source` returns wherever they take an array, and read it block by block, as often as they need.

Examples
--------
>>> import numpy as np, refkernel as rk
>>> X = np.random.default_rng(0).normal(size=(5000, 3))
>>> source = rk.sources.open_source(lambda: (X[i : i + 1000] for i in range(0, 5000, 1000)))
>>> model = rk.SVDD(rk.ReferenceKernel(references=rk.references.Subset(50)), random_state=0).fit(source)
>>> model.predict(source).shape
(5000,)
"""

from .source import Source as Source
from .source import as_source as as_source
from .source import is_source as is_source
from .source import open_source

__all__ = ["open_source"]
__dir__ = __all__.copy
