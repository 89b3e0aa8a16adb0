"""Kernels: k(X, Z), its diagonal, and a width that follows the data.

Kernels add and multiply: ``RBF() + 0.1 * Linear()`` is a kernel. ``kernel=`` of an estimator takes a kernel object, a name
("rbf", "linear", "poly", "laplacian", "sigmoid", "precomputed", or any of ``sklearn.metrics.pairwise``) or a callable.
"""

from .adapters import Function, KernelLike, Pairwise, Precomputed, as_kernel
from .base import Kernel, Product, Scaled, Sum
from .products import Linear, Polynomial, Sigmoid
from .stationary import RBF, Laplacian

__all__ = [
    "RBF",
    "Function",
    "Kernel",
    "KernelLike",
    "Laplacian",
    "Linear",
    "Pairwise",
    "Polynomial",
    "Precomputed",
    "Product",
    "Scaled",
    "Sigmoid",
    "Sum",
    "as_kernel",
]
__dir__ = __all__.copy
