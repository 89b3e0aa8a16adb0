"""Types that several rooms annotate with."""

import os
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

MatrixLike: TypeAlias = npt.ArrayLike | sp.sparray | sp.spmatrix
"""Samples in rows: what NumPy reads as a 2-d array (lists and data frames too), or a SciPy sparse matrix."""

StrPath: TypeAlias = str | os.PathLike[str]
"""A file or folder, by name or as a ``Path``."""

RandomStateLike: TypeAlias = int | np.random.RandomState | None
"""What scikit-learn calls a ``random_state``."""
