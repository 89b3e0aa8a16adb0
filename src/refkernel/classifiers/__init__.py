"""SVDD, the one-class SVM and the ellipsoid: one dual problem each."""

from .ellipsoid import ESVDD
from .svdd import SVDD, OneClassSVM

__all__ = ["ESVDD", "SVDD", "OneClassSVM"]
