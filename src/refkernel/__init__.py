"""One-class classification with reference kernels, scikit-learn compatible."""

from . import kernels, metrics, references
from .feature_map import NPT, ReferenceKernel, ReferenceMap
from .kernels import RBF
from .one_class import SVDD, DegenerateSolutionWarning, OneClassSVM
from .preprocessing import TargetScaler

__version__ = "0.1.0"

__all__ = [
    "NPT",
    "RBF",
    "SVDD",
    "DegenerateSolutionWarning",
    "OneClassSVM",
    "ReferenceKernel",
    "ReferenceMap",
    "TargetScaler",
    "kernels",
    "metrics",
    "references",
]
