"""Nested parameters that do not leak from one estimator into another."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import clone

from ._sklearn import QuickParams
from .kernels import as_kernel
from .references import as_strategy

BY_NAME = {"kernel": as_kernel, "references": as_strategy}
"""Parameters that users may give by name; ``kernel__scale`` then means the scale of what the name stands for."""


class NestedParams(QuickParams):
    """``set_params`` copies a nested object before it changes it, because defaults are shared by all instances."""

    def set_params(self, **params: Any) -> Self:
        nested = {name: value for name, value in params.items() if "__" in name}
        super().set_params(**{name: value for name, value in params.items() if name not in nested})
        for name in {name.partition("__")[0] for name in nested} & set(BY_NAME) & set(self.get_params(deep=False)):
            setattr(self, name, clone(BY_NAME[name](getattr(self, name)), safe=False))
        return super().set_params(**nested)
