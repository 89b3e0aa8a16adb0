"""Model selection that shares work between candidates."""

from .paths import Formulation, decision_paths
from .search import OneClassGridSearch

__all__ = ["Formulation", "OneClassGridSearch", "decision_paths"]
__dir__ = __all__.copy
