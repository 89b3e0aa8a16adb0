"""Every error and warning class of this package."""

from __future__ import annotations

import unicodedata

__all__ = [
    "DataError",
    "DegenerateSolutionWarning",
    "DownloadError",
    "FarSamplesWarning",
    "ModelFileError",
    "ResultsError",
    "TableError",
    "printable",
]


JOINERS = "\u200c\u200d\u00ad"
"""Invisible characters that ordinary words of some languages contain."""


class DegenerateSolutionWarning(UserWarning):
    """The one-class SVM's optimum is w = 0: it cannot tell any sample from any other.

    This happens if the targets' mean is (nearly) the origin of the kernel's space, as after centring on the training samples
    themselves: equal weights then cancel, and the decision values are rounding noise. Use a kernel that is not centred on the
    targets (``center=False``, or references other than the targets), or :class:`SVDD`.

    Examples
    --------
    >>> import warnings, numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> with warnings.catch_warnings(record=True) as raised:
    ...     warnings.simplefilter("always")
    ...     model = rk.OneClassSVM(rk.ReferenceKernel(references="training")).fit(X)
    >>> [warning.category.__name__ for warning in raised]
    ['DegenerateSolutionWarning']
    """


class FarSamplesWarning(UserWarning):
    """The description accepts every sample that is far from all of its references.

    Far from all references, a reference kernel on RBF or Laplacian maps every sample to one point, which may lie inside the
    description. Use a wider base kernel (``RBF(scale=10)``), references that reach where new samples may fall
    (``"uniform"``, ``Normal(scale=3)``, your own), or the plain kernel. ``ReferenceMap.residual`` measures how far a sample is.

    Examples
    --------
    >>> import warnings, numpy as np, refkernel as rk
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", rk.FarSamplesWarning)  # refuse such models
    ...     try:
    ...         model = rk.SVDD(rk.ReferenceKernel(rk.RBF(0.1), references="training")).fit(X)
    ...     except rk.FarSamplesWarning:
    ...         model = rk.SVDD(rk.RBF(0.1)).fit(X)
    >>> model.predict([[100.0, 100.0]])
    array([-1])
    """


def printable(text: str) -> str:
    """Spell out control characters (``\\x1b``), so that a terminal shows them instead of obeying them.

    Parameters
    ----------
    text : str
        Any text.

    Returns
    -------
    str
        The same text without control characters other than line ends.

    Examples
    --------
    >>> from refkernel.exceptions import printable
    >>> print(printable("a\\x1b[31mb"))
    a\\x1b[31mb
    """
    return "".join(letter if letter == "\n" or not _is_control(letter) else letter.encode("unicode_escape").decode() for letter in text)


def _is_control(letter: str) -> bool:
    return unicodedata.category(letter) in ("Cc", "Cf", "Cs") and letter not in JOINERS


class _PrintableError(ValueError):
    """An error whose message may quote a file."""

    def __init__(self, message: str = "") -> None:
        super().__init__(printable(str(message)))


class ModelFileError(_PrintableError):
    """A model cannot be saved, or a file is not a model file, is damaged, too new, too large, or holds types not known to be safe.

    Examples
    --------
    >>> import refkernel as rk
    >>> try:
    ...     model = rk.load("missing.rk")
    ... except rk.ModelFileError as error:
    ...     print(error)
    missing.rk does not exist (the current folder is ...).
    """


class TableError(_PrintableError):
    """A file is not a usable table; the message says what to do about it.

    The commands that read tables raise it, and print its message.

    Examples
    --------
    >>> from refkernel.exceptions import TableError
    >>> issubclass(TableError, ValueError)
    True
    """


class ResultsError(RuntimeError):
    """A results folder cannot be used; the message says why and what to do.

    The commands that run experiments raise it, and print its message.

    Examples
    --------
    >>> from refkernel.exceptions import ResultsError
    >>> issubclass(ResultsError, RuntimeError)
    True
    """


class DataError(OSError):
    """A data file is missing, cannot be read, or its bytes differ from the published ones.

    Examples
    --------
    >>> from refkernel import datasets
    >>> try:
    ...     split = datasets.load_task("Bank1", splits="authors", data_dir="missing")
    ... except datasets.DataError as error:
    ...     print(type(error).__name__)
    DataError
    """


class DownloadError(DataError):
    """A data file could not be downloaded.

    Examples
    --------
    It is a :class:`DataError`, so one ``except`` covers a missing file and a missing network.

    >>> from refkernel import datasets
    >>> issubclass(datasets.DownloadError, datasets.DataError)
    True
    """


def __dir__() -> list[str]:
    return __all__
