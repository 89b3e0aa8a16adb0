"""One-class classification with reference kernels, scikit-learn compatible.

Names are imported when they are first used, so that ``import refkernel`` and ``refkernel --help`` answer at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import datasets, exceptions, kernels, metrics, model_selection, plot, references
    from . import large as sources
    from .classifiers import ESVDD, SVDD, OneClassSVM
    from .detectors import calibration, pseudo_outliers
    from .detectors.auto import AutoDetector
    from .detectors.calibration import ConformalDetector
    from .detectors.calibration.base import suspects
    from .detectors.explain import Counterfactuals, Explanation, counterfactuals, explain
    from .detectors.residual import ReferenceResidual
    from .exceptions import DegenerateSolutionWarning, FarSamplesWarning, ModelFileError
    from .export.files import load, read_about, save
    from .export.onnx import to_onnx
    from .kernels import RBF
    from .maps import NPT, ReferenceKernel, ReferenceMap
    from .model_selection import OneClassGridSearch
    from .pages import report
    from .preprocessing import TargetImputer, TargetScaler
    from .tabular import TableEncoder
    from .tabular.comparison import compare
    from .tabular.detector import TableDetector
    from .tabular.monitor import Monitor
    from .tabular.windows import windows

    __version__: str

__all__ = [
    "ESVDD",
    "NPT",
    "RBF",
    "SVDD",
    "AutoDetector",
    "ConformalDetector",
    "Counterfactuals",
    "DegenerateSolutionWarning",
    "Explanation",
    "FarSamplesWarning",
    "ModelFileError",
    "Monitor",
    "OneClassGridSearch",
    "OneClassSVM",
    "ReferenceKernel",
    "ReferenceMap",
    "ReferenceResidual",
    "TableDetector",
    "TableEncoder",
    "TargetImputer",
    "TargetScaler",
    "calibration",
    "compare",
    "counterfactuals",
    "datasets",
    "exceptions",
    "explain",
    "kernels",
    "load",
    "metrics",
    "model_selection",
    "plot",
    "pseudo_outliers",
    "read_about",
    "references",
    "report",
    "save",
    "sources",
    "suspects",
    "to_onnx",
    "windows",
]
__dir__ = [*__all__, "__version__"].copy

_HOMES = {
    "classifiers": ("ESVDD", "SVDD", "OneClassSVM"),
    "detectors.auto": ("AutoDetector",),
    "detectors.calibration": ("ConformalDetector",),
    "detectors.calibration.base": ("suspects",),
    "detectors.explain": ("Counterfactuals", "Explanation", "counterfactuals", "explain"),
    "detectors.residual": ("ReferenceResidual",),
    "exceptions": ("DegenerateSolutionWarning", "FarSamplesWarning", "ModelFileError"),
    "export.files": ("load", "read_about", "save"),
    "export.onnx": ("to_onnx",),
    "kernels": ("RBF",),
    "maps": ("NPT", "ReferenceKernel", "ReferenceMap"),
    "model_selection": ("OneClassGridSearch",),
    "pages": ("report",),
    "preprocessing": ("TargetImputer", "TargetScaler"),
    "tabular": ("TableEncoder",),
    "tabular.comparison": ("compare",),
    "tabular.detector": ("TableDetector",),
    "tabular.monitor": ("Monitor",),
    "tabular.windows": ("windows",),
}
"""The modules of the names that are not modules themselves; a test holds this to the imports above."""

_MODULES = {"calibration": "detectors.calibration", "pseudo_outliers": "detectors.pseudo_outliers", "sources": "large"}
"""Public modules that live in another room."""

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker would take any name for granted

    def __getattr__(name: str) -> Any:
        """Import a public name on first use, and keep it."""
        if name == "__version__":
            from importlib.metadata import PackageNotFoundError, version

            try:
                found = version("refkernel")  # as which it was built, from the tags of the repository
            except PackageNotFoundError:
                found = "0+unknown"  # the sources are on the path, and nothing is installed
        elif name in _HOME_OF:
            found = getattr(import_module(f".{_HOME_OF[name]}", __name__), name)
        elif name in __all__:
            found = import_module(f".{_MODULES.get(name, name)}", __name__)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = found
        return found
