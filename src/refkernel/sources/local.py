"""Sources on one machine: arrays with slices, iterators of blocks, Parquet files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .base import BLOCK_BYTES, Block, Source, checked_block

__all__ = ["PARQUET", "ArraySource", "BlockSource", "ParquetSource"]

PARQUET = (".parquet", ".pq")


class ArraySource(Source):
    """Anything with a shape, a dtype and slices: an ndarray, a memory map, a Zarr or HDF5 array."""

    def __init__(self, X: Any) -> None:
        if len(X.shape) != 2:
            raise ValueError(f"The array has shape {tuple(X.shape)}; rows of samples, (rows, columns), were expected.")
        self._X = X

    @property
    def n_columns(self) -> int:
        return int(self._X.shape[1])

    def __len__(self) -> int:
        return int(self._X.shape[0])

    @property
    def nbytes(self) -> int:
        """The size of the array."""
        return int(getattr(self._X, "nbytes", 0))

    def blocks(self) -> Iterator[Block]:
        n, step = len(self), max(BLOCK_BYTES // (8 * max(self.n_columns, 1)), 1)
        for start in range(0, n, step):
            stop = min(start + step, n)
            yield Block(start, stop - start, partial(self._rows_of, start, stop))

    def _rows_of(self, start: int, stop: int) -> np.ndarray:
        return checked_block(self._X[start:stop], start, self.n_columns)


class BlockSource(Source):
    """Blocks from an iterable that starts again whenever it is asked to, or from a function that makes an iterator."""

    def __init__(self, blocks: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        if not callable(blocks) and iter(blocks) is blocks:
            raise ValueError(
                f"The {type(blocks).__name__} can be read only once, but a fit reads its rows several times. Pass a function that makes "
                "it, for example rk.sources.open(lambda: my_blocks()), or a list of blocks."
            )
        self._make: Callable[[], Iterable[Any]] = blocks if callable(blocks) else lambda: blocks
        self._first: int | None = None
        self._count: int | None = None

    @property
    def n_columns(self) -> int:
        if self._first is None:
            self._first = next((checked_block(X, 0, None).shape[1] for X in self._make()), None)
            if self._first is None:
                raise ValueError("The iterator gave no block: there are no rows to read.")
        return self._first

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

        self._files = _parquet_files(Path(path))
        schema = parquet.read_schema(self._files[0])
        self.names = list(columns) if columns is not None else list(schema.names)
        missing = [name for name in self.names if name not in schema.names]
        if missing:
            raise ValueError(f"{self._files[0]} has no column {missing[0]!r}. Its columns: {', '.join(schema.names)}.")
        texts = [name for name in self.names if not _is_numeric(schema.field(name).type)]
        if texts:
            raise ValueError(
                f"Column {texts[0]!r} of {self._files[0]} holds {schema.field(texts[0]).type}, not numbers. "
                "Name the numeric columns: rk.sources.open(path, columns=[...])."
            )

    @property
    def n_columns(self) -> int:
        return len(self.names)

    def __len__(self) -> int:
        import pyarrow.parquet as parquet

        return sum(parquet.ParquetFile(path).metadata.num_rows for path in self._files)

    def blocks(self) -> Iterator[Block]:
        import pyarrow.parquet as parquet

        start, step = 0, max(BLOCK_BYTES // (8 * max(self.n_columns, 1)), 1)
        for path in self._files:
            with parquet.ParquetFile(path) as file:
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


def _is_numeric(kind: Any) -> bool:
    import pyarrow.types as types

    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)
