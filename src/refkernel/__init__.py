"""One-class classification with reference kernels, scikit-learn compatible.

Names are imported when they are first used, so that ``import refkernel`` and ``refkernel --help`` answer at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import calibration, datasets, exceptions, kernels, metrics, model_selection, plot, pseudo_outliers, references, sources
    from ._encoding import TableEncoder
    from .auto import AutoDetector
    from .calibration import ConformalDetector
    from .ellipsoid import ESVDD
    from .exceptions import DegenerateSolutionWarning, FarSamplesWarning, ModelFileError
    from .explanations import Counterfactuals, Explanation, counterfactuals, explain
    from .feature_map import NPT, ReferenceKernel, ReferenceMap
    from .kernels import RBF
    from .model_selection import OneClassGridSearch
    from .one_class_svm import OneClassSVM
    from .onnx_export import to_onnx
    from .persistence import load, read_about, save
    from .preprocessing import TargetImputer, TargetScaler
    from .residual import ReferenceResidual
    from .stream import StreamDetector
    from .svdd import SVDD

    __version__: str

__all__ = [
    "ESVDD",
    "NPT",
    "RBF",
    "SVDD",
    "AutoDetector",
    "ConformalDetector",
    "Counterfactuals",
    "DegenerateSolutionWarning",
    "Explanation",
    "FarSamplesWarning",
    "ModelFileError",
    "OneClassGridSearch",
    "OneClassSVM",
    "ReferenceKernel",
    "ReferenceMap",
    "ReferenceResidual",
    "StreamDetector",
    "TableEncoder",
    "TargetImputer",
    "TargetScaler",
    "calibration",
    "counterfactuals",
    "datasets",
    "exceptions",
    "explain",
    "kernels",
    "load",
    "metrics",
    "model_selection",
    "plot",
    "pseudo_outliers",
    "read_about",
    "references",
    "save",
    "sources",
    "to_onnx",
]

_HOMES = {
    "_encoding": ("TableEncoder",),
    "auto": ("AutoDetector",),
    "calibration": ("ConformalDetector",),
    "ellipsoid": ("ESVDD",),
    "exceptions": ("DegenerateSolutionWarning", "FarSamplesWarning", "ModelFileError"),
    "explanations": ("Counterfactuals", "Explanation", "counterfactuals", "explain"),
    "feature_map": ("NPT", "ReferenceKernel", "ReferenceMap"),
    "kernels": ("RBF",),
    "model_selection": ("OneClassGridSearch",),
    "one_class_svm": ("OneClassSVM",),
    "onnx_export": ("to_onnx",),
    "persistence": ("load", "read_about", "save"),
    "preprocessing": ("TargetImputer", "TargetScaler"),
    "residual": ("ReferenceResidual",),
    "stream": ("StreamDetector",),
    "svdd": ("SVDD",),
}
"""The modules of the names that are not modules themselves; a test holds this to the imports above."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker would take any name for granted

    def __getattr__(name: str) -> Any:
        """Import a public name on first use, and keep it."""
        if name == "__version__":
            found = _installed_version()
        elif name in _HOME_OF:
            found = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
        elif name in __all__:
            found = import_module(f".{name}", __name__)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found


def _installed_version() -> str:
    """The version that the installed package was built as, from the tags of the repository."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("refkernel")
    except PackageNotFoundError:
        return "0+unknown"  # the sources are on the path, and nothing is installed


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
