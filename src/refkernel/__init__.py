"""One-class classification with reference kernels, scikit-learn compatible."""

from . import datasets, kernels, metrics, model_selection, references
from .feature_map import NPT, ReferenceKernel, ReferenceMap
from .kernels import RBF
from .model_selection import OneClassGridSearch
from .one_class import SVDD, DegenerateSolutionWarning, OneClassSVM
from .preprocessing import TargetScaler

__version__ = "0.1.0"

__all__ = [
    "NPT",
    "RBF",
    "SVDD",
    "DegenerateSolutionWarning",
    "OneClassGridSearch",
    "OneClassSVM",
    "ReferenceKernel",
    "ReferenceMap",
    "TargetScaler",
    "datasets",
    "kernels",
    "metrics",
    "model_selection",
    "references",
]
