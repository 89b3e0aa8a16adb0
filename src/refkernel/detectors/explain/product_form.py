"""Scores as sums of products over features: what every explained model of kernels comes down to."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ..._core.distances import moderate
from ..._core.shapley import error_bound, nodes, path_of_pairs, path_of_sums, shapley_of_pairs, shapley_of_sums
from ..._core.threads import share_rows
from ...classifiers.base import OneClassClassifier
from ...kernels import RBF, Laplacian, Linear, Product, Scaled, Sum
from ...maps import ReferenceFit
from ..residual import ReferenceResidual
from .normal import dense
from .reasons import by_feature

WHAT_WORKS = (
    "Explanations need kernels that are products over features: RBF, Laplacian, their products, sums and multiples, and reference kernels "
    "on them; Linear alone or in a sum."
)

NARROWEST = 1e-50  # in moderate units, a narrower width has the same values: the kernel is 0 wherever rows differ
Loop: TypeAlias = Callable[..., None]  # a function of ``shapley``, which adds to its last argument


@dataclass(frozen=True)
class Products:
    """k(x, z) = Σ_c factor_c exp(-Σ_j rate_c0j (x_j - z_j)² + rate_c1j |x_j - z_j| + rate_c2j sqrt(|x_j - z_j|)) + linear · x'z."""

    factor: np.ndarray
    rate: np.ndarray
    linear: float = 0.0


@dataclass(frozen=True)
class ProductForm:
    """score(x) = constant + Σ_a weight_a p_a(x) + Σ_ab pair_ab p_a(x) p_b(x) + linear'x + curvature Σ_j x_j².

    p_a is a product as in ``Products``, for kind k and centre z, all centres of kind 0 first. A feature is switched off by leaving its
    factors and its terms out. ``constant`` and all weights together are then the score of a row that agrees with everything.
    """

    centres: np.ndarray
    rate: np.ndarray
    weight: np.ndarray
    pair: np.ndarray | None
    constant: float
    linear: np.ndarray
    curvature: float = 0.0
    unit: float = 1.0  # rows and centres are in this unit, so that squares of differences neither overflow nor underflow

    @property
    def baseline(self) -> float:
        """The score with all features switched off."""
        return float(self.constant + self.weight.sum() + (0.0 if self.pair is None else self.pair.sum()))

    def shapley(self, X: np.ndarray, feature: np.ndarray, count: int) -> np.ndarray:
        """Exact Shapley values (rows × count); ``feature`` is the number of each column's feature."""
        return self._added(X, feature, count, shapley_of_sums, shapley_of_pairs, (nodes(count),))

    def path(self, X: np.ndarray, feature: np.ndarray, count: int) -> np.ndarray:
        """Aumann and Shapley's values along the path on which all exponents grow together from 0 (rows × count)."""
        return self._added(X, feature, count, path_of_sums, path_of_pairs, ())

    def error_bound(self, count: int) -> float:
        """How far a Shapley value may be from the exact one, beside rounding."""
        size = np.abs(self.weight).sum() + (0.0 if self.pair is None else np.abs(self.pair).sum())
        return error_bound(nodes(count)[0].size, count) * float(size)

    def _added(self, X: np.ndarray, feature: np.ndarray, count: int, sums: Loop, pairs: Loop, rule: tuple[Any, ...]) -> np.ndarray:
        X = X / self.unit
        phi = by_feature(self.linear * X + self.curvature * X**2, feature, count)
        products = (np.ascontiguousarray(self.centres.T), self.rate, feature)

        def add(start: int, stop: int) -> None:
            if self.weight.any():
                sums(X[start:stop], *products, self.weight, *rule, phi[start:stop])
            if self.pair is not None:
                pairs(X[start:stop], *products, self.pair, *rule, phi[start:stop])

        share_rows(add, len(X)) if len(X) > 1 else add(0, len(X))
        return phi


def products_of(kernel: Any, d: int, unit: float) -> Products:
    """A fitted kernel as a sum of products over d columns, of rows in this unit."""
    rate = np.zeros((1, 3, d))
    if isinstance(kernel, RBF):
        rate[0, 0] = 0.5 / np.square(np.maximum(np.asarray(kernel.sigma_) / unit, NARROWEST))
        return Products(np.ones(1), rate)
    if isinstance(kernel, Laplacian):
        rate[0, 1 if kernel.exponent == 1.0 else 2] = kernel.gamma_ * unit**kernel.exponent
        return Products(np.ones(1), rate)
    if isinstance(kernel, Linear):
        return Products(np.empty(0), rate[:0], float(np.square(unit)))
    if isinstance(kernel, Scaled):
        inner = products_of(kernel._parts[0], d, unit)
        return Products(kernel.factor * inner.factor, inner.rate, kernel.factor * inner.linear)
    if not isinstance(kernel, Sum | Product):
        raise TypeError(f"{type(kernel).__name__} is not a sum of products over features. {WHAT_WORKS}")
    first, second = (products_of(part, d, unit) for part in kernel._parts)
    if isinstance(kernel, Sum):
        factor = np.concatenate([first.factor, second.factor])
        return Products(factor, np.vstack([first.rate, second.rate]), first.linear + second.linear)
    if first.linear or second.linear:
        raise TypeError(f"A product with a linear kernel is not a sum of products over features. {WHAT_WORKS}")
    factor = np.multiply.outer(first.factor, second.factor).ravel()
    return Products(factor, (first.rate[:, None] + second.rate).reshape(-1, 3, d))


def form_of(model: Any) -> ProductForm:
    """The score of a fitted model as a sum of products; on references Phi(x) = A'k(x, R) + p, and the residual is what Phi leaves."""
    is_residual = isinstance(model, ReferenceResidual)
    if not is_residual and not isinstance(model, OneClassClassifier):
        raise TypeError(
            f"{type(model).__name__} cannot be explained: SVDD, OneClassSVM, ReferenceResidual and AutoDetector can, alone, at the end of "
            "a pipeline or as the best of a search."
        )
    fitted = model.map_ if is_residual else model.kernel_
    on_references = isinstance(fitted, ReferenceFit)
    Z, unit = moderate(dense(fitted.references_ if on_references else model.support_vectors_))
    products = products_of(fitted.kernel_ if on_references else fitted, Z.shape[1], unit)
    slope, share = (0.0, -1.0) if is_residual else (model.classifier.slope, model.classifier.diag_share)
    pair, linear, curvature = None, np.zeros(Z.shape[1]), 0.0
    if not on_references:
        weight = slope * model.dual_coef_[0]
        constant = -share * (float(products.factor.sum()) + model._quadratic)
        linear, curvature = products.linear * (weight @ Z), -share * products.linear
    elif products.linear:
        raise TypeError(f"The square of a linear kernel, in a reference kernel, is not a sum of products over features. {WHAT_WORKS}")
    else:
        projection = fitted._shrunken(model.rank_, model.ridge) if is_residual else fitted._factor.projection
        A, p = projection[:-1], projection[-1]
        weight, constant = -2.0 * share * (A @ p), -share * (p @ p)
        if is_residual:
            weight = weight + (2.0 / len(Z) if fitted.center else 0.0)
            constant -= float(products.factor.sum()) + fitted._mean_norm2
        else:
            weight = weight + slope * (A @ model._normal)
            constant += slope * (p @ model._normal) - share * model._quadratic
        if share:
            pair = np.ascontiguousarray(np.kron(np.multiply.outer(products.factor, products.factor), -share * (A @ A.T)))
    weights = np.multiply.outer(products.factor, weight).ravel()  # one product for each centre and each part of the kernel
    return ProductForm(Z, np.ascontiguousarray(products.rate), weights, pair, float(constant), linear, float(curvature), unit)
