"""The private names of scikit-learn that this package uses, tested with 1.6 to 1.9. If a release moves one, adapt this module."""

import functools
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_method_params as check_method_params

__all__ = ["BaseSearchCV", "QuickParams", "check_method_params", "safe_indexing", "safe_split"]


class QuickParams(BaseEstimator):
    """A BaseEstimator that reads the signature of a class once: copies and searches ask for parameter names again and again."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        key: Any = cls
        return list(_names_of(key))


@functools.cache
def _names_of(cls: Any) -> tuple[str, ...]:
    return tuple(super(QuickParams, cls)._get_param_names())
