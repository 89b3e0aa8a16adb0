"""From what users have to a source."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import Source
from .local import ArraySource, BlockSource, ParquetSource

__all__ = ["as_source", "is_source", "open"]

ON_DISK = ("zarr", "h5py")
"""Packages whose arrays are read in slices."""


def open(data: Any, *, columns: Sequence[str] | None = None) -> Source:
    """Open rows that need not fit into memory.

    Parameters
    ----------
    data : path, array, iterable of blocks, callable or Dask collection
        A Parquet file or a folder of them; anything with a shape, a dtype and slices (a memory map, a Zarr or HDF5 array); blocks of
        rows in a list, or a function that makes an iterator over blocks; a Dask array or data frame.
    columns : sequence of str, optional
        The columns of a Parquet file; all by default.

    Returns
    -------
    Source
        The rows, for ``fit``, ``predict``, ``transform`` and the like.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rk.sources.open(np.zeros((10, 2))).shape
    (10, 2)
    """
    if isinstance(data, Source):
        return data
    if isinstance(data, str | os.PathLike):
        return ParquetSource(os.fspath(data), columns)
    if columns is not None:
        raise ValueError(f"columns={list(columns)!r} selects columns of a Parquet file; of other data, select them before opening.")
    if _package(data) in ("dask", "dask_expr"):
        from .dask import DaskSource

        return DaskSource(data)
    if all(hasattr(data, name) for name in ("shape", "dtype", "__getitem__")):
        return ArraySource(data)
    if callable(data) or hasattr(data, "__iter__"):
        return BlockSource(data)
    raise TypeError(
        f"{type(data).__name__} cannot be opened: pass a Parquet file or folder, an array with slices, blocks of rows or a function that "
        "makes an iterator over them, or a Dask collection."
    )


def is_source(X: Any) -> bool:
    """Tell whether estimators read X block by block: a source, a Dask collection, a Zarr or HDF5 array.

    Parameters
    ----------
    X : Any
        What a user passed to an estimator.

    Returns
    -------
    bool
        False for arrays in memory, and for memory maps, which may be either.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rk.sources.is_source(np.eye(2)), rk.sources.is_source(rk.sources.open(np.eye(2)))
    (False, True)
    """
    return isinstance(X, Source) or _package(X) in ("dask", "dask_expr", *ON_DISK)


def as_source(X: Any) -> Source:
    """Return X as a source, if it is not one already.

    Parameters
    ----------
    X : Any
        As for :func:`open`.

    Returns
    -------
    Source
        The rows of X.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> rk.sources.as_source(np.eye(2)).n_columns
    2
    """
    return open(X)


def _package(X: Any) -> str:
    return "" if isinstance(X, np.ndarray) else type(X).__module__.partition(".")[0]
