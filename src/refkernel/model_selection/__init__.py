"""Model selection that shares work between candidates."""

from .paths import Formulation, decision_paths
from .search import OneClassGridSearch

__all__ = ["Formulation", "OneClassGridSearch", "decision_paths"]


def __dir__() -> list[str]:
    return __all__
