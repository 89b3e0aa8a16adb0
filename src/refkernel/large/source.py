"""Sources: rows in blocks that can be read again and again. Arrays with slices, iterators of blocks, Parquet files; how they are opened."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from .._core.threads import summed
from .._core.validation import unmasked
from .rows import StreamedRows, Terms, room_for

BLOCK_BYTES = 1 << 23  # rows read at a time, where the source can be cut anywhere: 8 MB in double precision
PARQUET = (".parquet", ".pq")
ON_DISK = ("zarr", "h5py")  # packages whose arrays are read in slices


class Block:
    """Some rows: the number of the first, how many there are, and ``load()``, which reads them when it is first called."""

    def __init__(self, start: int, rows: int, read: Callable[[], np.ndarray]) -> None:
        self.start, self.rows, self.load = start, rows, cache(read)


class Source:
    """Rows in blocks. ``len(source)`` is their number; counting may cost a reading."""

    n_columns: int
    blocks: Callable[[], Iterator[Block]]  # the rows from the first to the last

    def __len__(self) -> int:
        if not hasattr(self, "_rows"):
            self._rows = sum(block.rows for block in self.blocks())
        return self._rows

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows and of columns."""
        return len(self), self.n_columns

    def reduce(self, function: Callable[..., Any], *state: Any, threads: bool = True) -> Any:
        """The sum of ``function(X, start, *state)`` over the blocks; None without any. ``threads``: whether several may call it at once."""
        return summed(lambda block: function(block.load(), block.start, *state), self.blocks(), threads)

    def apply(self, function: Callable[[np.ndarray], np.ndarray]) -> Any:
        """A result for every row by a function from rows (k × d) to k numbers or k rows; lazy for a Dask collection."""
        return np.concatenate([function(block.load()) for block in self.blocks() if block.rows])

    def transformed(self, function: Callable[[np.ndarray], np.ndarray], n_columns: int) -> Any:
        """The rows transformed, each whenever it is read: a source, or an array of Dask for a Dask collection."""
        return Mapped(self, function, n_columns)

    def rows_at(self, indices: np.ndarray) -> np.ndarray:
        """The rows of these numbers, which ascend."""
        found = self.reduce(_gathered, indices, threads=False)
        return np.concatenate(found) if found is not None else np.empty((0, self.n_columns))

    def feature_rows(
        self, features: Callable[..., np.ndarray], r: int, terms: Terms, weight: np.ndarray | None, memory: float, thread_safe: bool
    ) -> Any:
        """Passes over the features of all rows, which may take ``memory`` MB between them; ``weight`` is signed, None for ones."""
        return StreamedRows(self, features, r, terms, weight, room_for(len(self), r, memory), thread_safe)


def _gathered(X: np.ndarray, start: int, chosen: np.ndarray) -> tuple[np.ndarray]:
    """The rows of a block whose numbers were chosen (in ascending order)."""
    first, last = np.searchsorted(chosen, [start, start + len(X)])
    return (X[chosen[first:last] - start],)


class Mapped(Source):
    """The rows of another source, transformed."""

    def __init__(self, source: Source, function: Callable[[np.ndarray], np.ndarray], n_columns: int) -> None:
        self._source, self._function, self.n_columns = source, function, n_columns

    def __len__(self) -> int:
        return len(self._source)

    def blocks(self) -> Iterator[Block]:
        for block in self._source.blocks():
            for begin, end in spans(block.rows, self.n_columns):
                yield Block(block.start + begin, end - begin, partial(self._transformed, block, begin, end))

    def _transformed(self, block: Block, begin: int, end: int) -> np.ndarray:
        return self._function(block.load()[begin:end])


def spans(rows: int, columns: int) -> Iterator[tuple[int, int]]:
    """Where to cut a source that can be cut anywhere: the first row of each block, and the one after its last."""
    step = max(BLOCK_BYTES // (8 * max(columns, 1)), 1)
    return ((start, min(start + step, rows)) for start in range(0, rows, step))


def checked_block(X: Any, start: int, n_columns: int | None) -> np.ndarray:
    """The rows of a block as numbers; raise with the number of the first row that is not usable."""
    found = np.asarray(unmasked(X))
    if found.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: the block from row {start:,} on holds complex numbers. Pass real columns.")
    if found.ndim != 2 or (n_columns is not None and found.shape[1] != n_columns):
        expected = f"(rows, {n_columns})" if n_columns is not None else "(rows, columns)"
        raise ValueError(f"The block from row {start:,} on has shape {found.shape}; {expected} was expected.")
    if found.dtype.kind not in "fiub":
        found = _as_numbers(found, start)
    if found.dtype not in (np.float64, np.float32):
        found = found.astype(np.float64)
    if found.size and not np.isfinite(found.sum()):
        for row, column in np.argwhere(~np.isfinite(found))[:1]:  # none if only the sum overflows
            what = f"Row {start + row:,} holds {found[row, column]} in column {column}"
            raise ValueError(f"{what}. Fill or drop missing values first, for example with TargetImputer.")
    return found


def _as_numbers(X: np.ndarray, start: int) -> np.ndarray:
    """Objects (or texts) as numbers; raise with the row and the value that is not a number."""
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError):
        for i, row in enumerate(X):
            for j, value in enumerate(row):
                try:
                    float(value)
                except (TypeError, ValueError):
                    what = f"Row {start + i:,} holds {value!r} in column {j}, which is not a number"
                    raise ValueError(f"{what}. Pass numeric columns only.") from None
        raise


def open_source(data: Any, *, columns: Sequence[str] | None = None) -> Source:
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
    >>> rk.sources.open_source(np.zeros((10, 2))).shape
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
    """Whether estimators read X block by block: a source, a Dask collection, a Zarr or HDF5 array. A memory map may be either."""
    return isinstance(X, Source) or _package(X) in ("dask", "dask_expr", *ON_DISK)


as_source = open_source
"""For estimators, whose input :func:`is_source` has recognised."""


def _package(X: Any) -> str:
    return "" if isinstance(X, np.ndarray) else type(X).__module__.partition(".")[0]


class ArraySource(Source):
    """Anything with a shape, a dtype and slices: an ndarray, a memory map, a Zarr or HDF5 array."""

    def __init__(self, X: Any) -> None:
        if len(X.shape) != 2:
            raise ValueError(f"The array has shape {tuple(X.shape)}; rows of samples, (rows, columns), were expected.")
        self._X, self.nbytes, self.n_columns = X, int(getattr(X, "nbytes", 0)), int(X.shape[1])

    def __len__(self) -> int:
        return int(self._X.shape[0])

    def blocks(self) -> Iterator[Block]:
        for start, stop in spans(len(self), self.n_columns):
            yield Block(start, stop - start, partial(self._rows_of, start, stop))

    def _rows_of(self, start: int, stop: int) -> np.ndarray:
        return checked_block(self._X[start:stop], start, self.n_columns)


class BlockSource(Source):
    """Blocks from an iterable that starts again whenever it is asked to, or from a function that makes an iterator."""

    def __init__(self, blocks: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        if not callable(blocks) and iter(blocks) is blocks:
            raise ValueError(
                f"The {type(blocks).__name__} can be read only once, but a fit reads its rows several times. Pass a function that makes "
                "it, for example rk.sources.open_source(lambda: my_blocks()), or a list of blocks."
            )
        self._make: Callable[[], Iterable[Any]] = blocks if callable(blocks) else lambda: blocks
        self._count: int | None = None

    @cached_property
    def n_columns(self) -> int:  # type: ignore[override]
        for X in self._make():
            return checked_block(X, 0, None).shape[1]
        raise ValueError("The iterator gave no block: there are no rows to read.")

    def blocks(self) -> Iterator[Block]:
        n_columns, start = self.n_columns, 0
        for found in self._make():
            X = checked_block(found, start, n_columns)
            if self._count is not None and start + len(X) > self._count:
                break
            yield Block(start, len(X), partial(np.asarray, X))
            start += len(X)
        else:
            self._count = start if self._count is None else self._count
            if start == self._count:
                return
        raise ValueError(
            f"The iterator gave {self._count:,} rows when it was first read, and now {'more' if start < self._count else f'{start:,}'}: "
            "it must give the same rows every time. If it can be read only once, pass a function that makes it."
        )


class ParquetSource(Source):
    """The numeric columns of a Parquet file, or of all Parquet files in a folder in the order of their names, read by row groups."""

    def __init__(self, path: str | Path, columns: Sequence[str] | None = None) -> None:
        import pyarrow.parquet as parquet
        import pyarrow.types as types

        self._files = _parquet_files(Path(path))
        schema = parquet.read_schema(self._files[0])
        self.names = list(columns) if columns is not None else list(schema.names)
        if missing := [name for name in self.names if name not in schema.names]:
            raise ValueError(f"{self._files[0]} has no column {missing[0]!r}. Its columns: {', '.join(schema.names)}.")
        of_numbers = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        if texts := [name for name in self.names if not any(fits(schema.field(name).type) for fits in of_numbers)]:
            raise ValueError(
                f"Column {texts[0]!r} of {self._files[0]} holds {schema.field(texts[0]).type}, not numbers. "
                "Name the numeric columns: rk.sources.open_source(path, columns=[...])."
            )
        self.n_columns, self._open = len(self.names), parquet.ParquetFile

    def __len__(self) -> int:
        return sum(self._open(path).metadata.num_rows for path in self._files)

    def blocks(self) -> Iterator[Block]:
        start, step = 0, max(BLOCK_BYTES // (8 * max(self.n_columns, 1)), 1)
        for path in self._files:
            with self._open(path) as file:
                for batch in file.iter_batches(step, columns=self.names):
                    columns = [batch.column(name).to_numpy(zero_copy_only=False) for name in self.names]
                    X = checked_block(np.column_stack(columns), start, self.n_columns)
                    yield Block(start, len(X), partial(np.asarray, X))
                    start += len(X)


def _parquet_files(path: Path) -> list[Path]:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist. Check the path.")
    files = sorted(file for file in path.iterdir() if file.suffix.lower() in PARQUET) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"The folder {path} holds no file that ends in .parquet or .pq.")
    return files
