"""The closed lists of what a model file may hold, by the kinds of skops' nodes: plain values, types, and functions found by name."""

import inspect
import sys
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import scipy.special  # noqa: F401 (its functions are listed)
import sklearn.model_selection
from sklearn.base import BaseEstimator
from sklearn.metrics import get_scorer, get_scorer_names

import refkernel

from .. import metrics
from .._core.file_rules import rules_of
from ..model_selection.scoring import NAMES

ROOMS = ("kernels", "references", "pseudo_outliers", "calibration", "model_selection")
"""Public modules whose types models may hold, besides those of the public classes."""

OWN_FUNCTIONS = (metrics.gmean_score, metrics.tpr_at_tnr_score)
INTERNAL_TYPES = frozenset({"sklearn.metrics._scorer._PassthroughScorer", "sklearn.compose._column_transformer._RemainderColsList"})
"""Types of scikit-learn without a public name. Not every version has all of them."""

SCIKIT_LEARN = {
    "sklearn.compose": "ColumnTransformer make_column_selector",
    "sklearn.decomposition": "PCA TruncatedSVD",
    "sklearn.feature_selection": "SelectKBest SelectPercentile VarianceThreshold",
    "sklearn.impute": "MissingIndicator SimpleImputer",
    "sklearn.kernel_approximation": "Nystroem RBFSampler",
    "sklearn.model_selection": "GridSearchCV RandomizedSearchCV",
    "sklearn.pipeline": "FeatureUnion Pipeline",
    "sklearn.preprocessing": "Binarizer FunctionTransformer KBinsDiscretizer MaxAbsScaler MinMaxScaler Normalizer OneHotEncoder "
    "OrdinalEncoder PowerTransformer QuantileTransformer RobustScaler StandardScaler",
    "sklearn.random_projection": "GaussianRandomProjection SparseRandomProjection",
}
"""Estimators that compute with NumPy alone, so that forged contents end in an error. Compiled code trusts the arrays of its estimator:
the reader must name a type that runs such code in ``trusted``."""

KEY_TYPES = frozenset({"builtins.str", "builtins.int", "builtins.float", "builtins.bool", "builtins.NoneType"})
SCALARS = frozenset(
    f"numpy.{kind.__name__}" for kind in set(np.sctypeDict.values()) if issubclass(kind, np.number | np.bool_ | np.str_ | np.bytes_)
)
ARRAYS = frozenset({"numpy.ndarray"})
UFUNC_MODULES = ("numpy", "numpy._core._multiarray_umath", "scipy.special", "scipy.special._ufuncs")
"""Where skops finds the home of a ufunc, depending on the version of NumPy."""

CONTAINERS = {
    "DictNode": frozenset({"builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"}),
    "ListNode": frozenset({"builtins.list"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "SetNode": frozenset({"builtins.set"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "JsonNode": frozenset({"builtins.str"}),
    "NdArrayNode": ARRAYS | SCALARS,
    "MaskedArrayNode": frozenset({"numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"}),
    "DTypeNode": frozenset({"numpy.dtype"}),
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "SparseMatrixNode": frozenset(f"scipy.sparse._{form}.{form}_{kind}" for form in ("csr", "csc") for kind in ("array", "matrix")),
    "TypeNode": KEY_TYPES | SCALARS,
}
"""Plain values by the kind of their node. All kinds other than these, ObjectNode and FunctionNode call what the file names."""


def known_types() -> frozenset[str]:
    """List the types and functions that a model file may hold besides plain values.

    Returns
    -------
    frozenset of str
        Their full names, "module.Name".

    Examples
    --------
    >>> from refkernel.export.files import known_types
    >>> "refkernel.classifiers.svdd.SVDD" in known_types(), "os.system" in known_types()
    (True, False)
    """
    return objects() | functions()


def objects() -> frozenset[str]:
    """Full names of the types that are rebuilt from their attributes, without calling their constructor."""
    for name in refkernel.__all__:
        if name[0].isupper() or name in ROOMS:
            getattr(refkernel, name)  # imports it, and what it holds
    ours = [(module, held) for module, held in list(sys.modules.items()) if module.partition(".")[0] == "refkernel"]
    own = (f"{module}.{name}" for module, held in ours for name, value in list(vars(held).items()) if _is_own(value))
    return frozenset(own) | _library_objects()


@cache
def functions() -> frozenset[str]:
    """Full names of the functions that a model may refer to: they are looked up, but never called during loading."""
    scored = [get_scorer(name)._score_func for name in get_scorer_names()]  # private: nothing public gives the function of a scorer
    ufuncs = {
        f"{module}.{name}"
        for module in UFUNC_MODULES
        if module in sys.modules
        for name, value in vars(sys.modules[module]).items()
        if isinstance(value, np.ufunc)
    }
    own = [scoring.scorer for scoring in NAMES.values() if inspect.isfunction(scoring.scorer)]
    return frozenset(map(_full_name, [*scored, *own, *OWN_FUNCTIONS])) | ufuncs


def _is_own(value: Any) -> bool:
    """Whether this is an estimator, kernel or strategy of this package, or another type of it that has rules for its attributes."""
    is_ours = inspect.isclass(value) and value.__module__.partition(".")[0] == "refkernel"
    return is_ours and (issubclass(value, BaseEstimator) or bool(rules_of(value)))


@cache
def _library_objects() -> frozenset[str]:
    estimators = [getattr(import_module(module), name) for module, names in SCIKIT_LEARN.items() for name in names.split()]
    splitters = [value for value in vars(sklearn.model_selection).values() if inspect.isclass(value) and hasattr(value, "split")]
    scorers = [type(get_scorer(name)) for name in get_scorer_names()]
    return frozenset(map(_full_name, [*estimators, *splitters, *scorers])) | INTERNAL_TYPES


def _full_name(value: Any) -> str:
    return f"{value.__module__}.{value.__name__}"
