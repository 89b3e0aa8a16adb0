"""One-class classification with reference kernels, scikit-learn compatible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import calibration, datasets, exceptions, kernels, metrics, model_selection, plot, pseudo_outliers, references
from .auto import AutoDetector
from .calibration import ConformalDetector
from .ellipsoid import ESVDD
from .exceptions import DegenerateSolutionWarning, FarSamplesWarning, ModelFileError
from .explanations import Counterfactuals, Explanation, counterfactuals, explain
from .feature_map import NPT, ReferenceKernel, ReferenceMap
from .kernels import RBF
from .model_selection import OneClassGridSearch
from .one_class_svm import OneClassSVM
from .persistence import load, read_about, save
from .preprocessing import TargetImputer, TargetScaler
from .residual import ReferenceResidual
from .svdd import SVDD

if TYPE_CHECKING:
    from .onnx_export import to_onnx

__version__ = "0.1.0"

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
    "to_onnx",
]


if not TYPE_CHECKING:  # a type checker would take any name for granted

    def __getattr__(name):
        """Import ``to_onnx`` on first use: it needs the extra ``onnx``."""
        if name == "to_onnx":
            from .onnx_export import to_onnx

            return to_onnx
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
