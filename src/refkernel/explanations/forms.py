"""Scores as sums of products over features: what every explained model of kernels comes down to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from .._one_class import OneClassClassifier
from .._threads import share_rows
from ..feature_map import ReferenceFit
from ..kernels import RBF, Laplacian, Linear, Product, Scaled, Sum
from ..residual import ReferenceResidual
from .loops import path_of_pairs, path_of_sums, shapley_of_pairs, shapley_of_sums
from .nodes import error_bound, nodes

__all__ = ["ProductForm", "form_of"]

WHAT_WORKS = (
    "Explanations need kernels that are products over features: RBF, Laplacian, their products, sums and multiples, and reference kernels "
    "on them; Linear alone or in a sum."
)


Loop: TypeAlias = Callable[..., None]
"""A jitted function of ``loops``, which adds to its last argument."""


@dataclass(frozen=True)
class Products:
    """k(x, z) = Σ_c factor_c exp(-Σ_j square_cj (x_j - z_j)² + absolute_cj |x_j - z_j|) + linear · x'z."""

    factor: np.ndarray
    square: np.ndarray
    absolute: np.ndarray
    linear: float = 0.0


@dataclass(frozen=True)
class ProductForm:
    """score(x) = constant + Σ_a weight_a p_a(x) + Σ_ab pair_ab p_a(x) p_b(x) + linear'x + curvature Σ_j x_j².

    p_a(x) = exp(-Σ_j square_kj (x_j - z_j)² + absolute_kj |x_j - z_j|) for kind k and centre z, all centres of kind 0 first. A feature
    is switched off by leaving its factors and its terms out. ``constant`` and all weights together are then the score of a
    row that agrees with everything.
    """

    centres: np.ndarray
    square: np.ndarray
    absolute: np.ndarray
    weight: np.ndarray
    pair: np.ndarray | None
    constant: float
    linear: np.ndarray
    curvature: float = 0.0

    @property
    def rate(self) -> np.ndarray:
        """The widths as ``loops`` takes them (kinds × 3 × columns)."""
        return np.stack([self.square, self.absolute, np.zeros_like(self.square)], axis=1)

    @property
    def baseline(self) -> float:
        """The score with all features switched off."""
        return float(self.constant + self.weight.sum() + (0.0 if self.pair is None else self.pair.sum()))

    def shapley(self, X: np.ndarray, feature: np.ndarray, count: int) -> np.ndarray:
        """Exact Shapley values (rows × count); ``feature`` is the number of each column's feature."""
        t, w = nodes(count)
        return self._added(X, feature, count, shapley_of_sums, shapley_of_pairs, (t, w))

    def path(self, X: np.ndarray, feature: np.ndarray, count: int) -> np.ndarray:
        """Aumann and Shapley's values along the path on which all exponents grow together from 0 (rows × count)."""
        return self._added(X, feature, count, path_of_sums, path_of_pairs, ())

    def error_bound(self, count: int) -> float:
        """How far a Shapley value may be from the exact one, beside rounding."""
        size = np.abs(self.weight).sum() + (0.0 if self.pair is None else np.abs(self.pair).sum())
        return error_bound(nodes(count)[0].size, count) * float(size)

    def _added(self, X: np.ndarray, feature: np.ndarray, count: int, sums: Loop, pairs: Loop, rule: tuple[np.ndarray, ...]) -> np.ndarray:
        terms = self.linear * X + self.curvature * X**2
        phi = np.zeros((len(X), count))
        np.add.at(phi.T, feature, terms.T)
        products = (np.ascontiguousarray(self.centres.T), self.rate, feature)

        def add(start: int, stop: int) -> None:
            if self.weight.any():
                sums(X[start:stop], *products, self.weight, *rule, phi[start:stop])
            if self.pair is not None:
                pairs(X[start:stop], *products, self.pair, *rule, phi[start:stop])

        share_rows(add, len(X)) if len(X) > 1 else add(0, len(X))
        return phi


@singledispatch
def products_of(kernel: Any, d: int) -> Products:
    """A resolved kernel as a sum of products over d columns."""
    raise TypeError(f"{type(kernel).__name__} is not a sum of products over features. {WHAT_WORKS}")


@products_of.register
def _(kernel: RBF, d: int) -> Products:
    return Products(np.ones(1), np.broadcast_to(0.5 / np.square(kernel.sigma), d)[None], np.zeros((1, d)))


@products_of.register
def _(kernel: Laplacian, d: int) -> Products:
    return Products(np.ones(1), np.zeros((1, d)), np.full((1, d), kernel.gamma))


@products_of.register
def _(kernel: Linear, d: int) -> Products:
    return Products(np.empty(0), np.empty((0, d)), np.empty((0, d)), 1.0)


@products_of.register
def _(kernel: Scaled, d: int) -> Products:
    inner = products_of(kernel.kernel, d)
    return Products(kernel.factor * inner.factor, inner.square, inner.absolute, kernel.factor * inner.linear)


@products_of.register
def _(kernel: Sum, d: int) -> Products:
    first, second = products_of(kernel.first, d), products_of(kernel.second, d)
    factor = np.concatenate([first.factor, second.factor])
    square, absolute = np.vstack([first.square, second.square]), np.vstack([first.absolute, second.absolute])
    return Products(factor, square, absolute, first.linear + second.linear)


@products_of.register
def _(kernel: Product, d: int) -> Products:
    first, second = products_of(kernel.first, d), products_of(kernel.second, d)
    if first.linear or second.linear:
        raise TypeError(f"A product with a linear kernel is not a sum of products over features. {WHAT_WORKS}")
    factor = np.multiply.outer(first.factor, second.factor).ravel()
    square, absolute = ((a[:, None] + b).reshape(-1, d) for a, b in ((first.square, second.square), (first.absolute, second.absolute)))
    return Products(factor, square, absolute)


@singledispatch
def form_of(model: Any) -> ProductForm:
    """The score of a fitted model as a sum of products."""
    raise TypeError(
        f"{type(model).__name__} cannot be explained: SVDD, OneClassSVM, ReferenceResidual and AutoDetector can, alone, at the end of a "
        "pipeline or as the best of a search."
    )


@form_of.register
def _(model: OneClassClassifier) -> ProductForm:
    if isinstance(model.kernel_, ReferenceFit):
        return _of_references(model)
    slope, share = model.classifier.slope, model.classifier.diag_share
    Z = _dense(model.support_vectors_)
    products = products_of(model.kernel_, Z.shape[1])
    b = slope * model.dual_coef_[0]
    constant = -share * (float(products.factor.sum()) + model._quadratic)
    return _form(products, Z, b, None, constant, products.linear * (b @ Z), -share * products.linear)


def _of_references(model: Any) -> ProductForm:
    """slope · Phi(x)'normal - share · (||Phi(x)||² + b'Kb), Phi(x) = A'k(x, R) + p."""
    slope, share = model.classifier.slope, model.classifier.diag_share
    R, products, A, p = _references(model.kernel_)
    normal = model._normal
    weight = slope * (A @ normal) - 2.0 * share * (A @ p)
    return _form(products, R, weight, -share * (A @ A.T) if share else None, slope * (p @ normal) - share * (p @ p + model._quadratic))


@form_of.register
def _(model: ReferenceResidual) -> ProductForm:
    fitted = model.map_
    R, products, A, p = _references(fitted, model.rank_)
    weight = 2.0 * (A @ p) + (2.0 / len(R) if fitted.center else 0.0)
    return _form(products, R, weight, A @ A.T, p @ p - float(products.factor.sum()) - fitted._mean_norm2)


def _references(fitted: Any, rank: int | None = None) -> tuple[np.ndarray, Products, np.ndarray, np.ndarray]:
    """The references R, their kernel, and A and p of Phi(x) = A'k(x, R) + p."""
    R = _dense(fitted.references_)
    products = products_of(fitted.kernel_, R.shape[1])
    if products.linear:
        raise TypeError(f"The square of a linear kernel, in a reference kernel, is not a sum of products over features. {WHAT_WORKS}")
    projection = fitted._factor.projection[:, :rank]
    return R, products, projection[:-1], projection[-1]


def _form(
    products: Products,
    Z: np.ndarray,
    weight: np.ndarray,
    pair: np.ndarray | None,
    constant: float,
    linear: Any = 0.0,
    curvature: float = 0.0,
) -> ProductForm:
    """One product for each centre and each part of the kernel."""
    return ProductForm(
        Z,
        np.ascontiguousarray(products.square),
        np.ascontiguousarray(products.absolute),
        np.multiply.outer(products.factor, weight).ravel(),
        None if pair is None else np.ascontiguousarray(np.kron(np.multiply.outer(products.factor, products.factor), pair)),
        float(constant),
        np.broadcast_to(linear, Z.shape[1]),
        float(curvature),
    )


def _dense(Z: Any) -> np.ndarray:
    return Z.toarray() if sp.issparse(Z) else np.asarray(Z, dtype=np.float64)
