"""The private names of scikit-learn that this package uses, tested with 1.6 to 1.9. If a release moves one, adapt this module."""

from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils.metaestimators import _safe_split as safe_split
from sklearn.utils.validation import _check_method_params as check_method_params

__all__ = ["BaseSearchCV", "check_method_params", "safe_indexing", "safe_split"]
