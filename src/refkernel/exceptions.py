"""Every error and warning class of this package."""

import unicodedata

__all__ = ["DataError", "DegenerateSolutionWarning", "DownloadError", "FarSamplesWarning", "ModelFileError", "ResultsError", "TableError"]
__dir__ = __all__.copy


class DegenerateSolutionWarning(UserWarning):
    """The one-class SVM's optimum is w = 0: it cannot tell any sample from any other.

    This happens if the targets' mean is (nearly) the origin of the kernel's space, as after centring on the training samples: equal
    weights then cancel, and decision values are rounding noise. Use ``center=False``, references other than the targets, or
    :class:`SVDD`.
    """


class FarSamplesWarning(UserWarning):
    """The description accepts every sample that is far from all of its references.

    Far from all references, a reference kernel on RBF or Laplacian maps every sample to one point, which may lie inside the
    description. Use a wider base kernel (``RBF(scale=10)``), references that reach where new samples may fall (``"uniform"``,
    ``Normal(scale=3)``, your own), or the plain kernel. ``ReferenceMap.residual`` measures how far a sample is.
    """


_JOINERS = "\u200c\u200d\u00ad"  # invisible characters that ordinary words of some languages contain


def _printable(text: str) -> str:
    """The text with control characters spelt out (``\\x1b``), so that a terminal shows them instead of obeying them."""
    if text.isprintable():
        return text
    obeyed = {letter for letter in set(text) - {"\n", *_JOINERS} if unicodedata.category(letter) in ("Cc", "Cf", "Cs")}
    return "".join(letter.encode("unicode_escape").decode() if letter in obeyed else letter for letter in text)


class _PrintableError(ValueError):
    """An error whose message may quote a file."""

    def __init__(self, message: str = "") -> None:
        super().__init__(_printable(str(message)))


class ModelFileError(_PrintableError):
    """A model cannot be saved, or a file is not a model file, is damaged, too new, too large, or holds types not known to be safe."""


class TableError(_PrintableError):
    """A file is not a usable table; the message says what to do about it. The commands that read tables print it."""


class ResultsError(RuntimeError):
    """A results folder cannot be used; the message says why and what to do. The commands that run experiments print it."""


class DataError(OSError):
    """A data file is missing, cannot be read, or its bytes differ from the published ones."""


class DownloadError(DataError):
    """A data file could not be downloaded."""
