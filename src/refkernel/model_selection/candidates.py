"""What candidates of a grid share: the plan of a search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from .._factor import check_floor
from .._one_class import OneClassClassifier, resolved_threshold
from ..feature_map import ReferenceFit, ReferenceMap
from ..kernels import Kernel, Linear, as_kernel
from .paths import Formulation

__all__ = ["Alone", "KernelAxis", "Shared", "clone_values", "final_step", "plan"]

KERNEL_AXES = ("scale", "sigma", "gamma", "degree", "coef0")
"""Parameters of a base kernel that change neither the references nor the distances."""


@dataclass
class KernelAxis:
    """One base kernel and the candidates on it: their numbers in the grid, and the value of nu or C of each."""

    kernel: Any
    parameter: str
    candidates: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


@dataclass
class Shared:
    """Candidates that share preprocessing, references and distances.

    ``prefix`` holds the transformers before the kernel, ``reference`` the ReferenceMap or ReferenceKernel (None on a plain
    kernel), ``classifier`` the estimator at the end; ``key`` is the same for equal prefixes.
    """

    prefix: list[Any]
    key: Any
    reference: Any
    classifier: Any
    axes: list[KernelAxis] = field(default_factory=list)
    members: list[Alone] = field(default_factory=list)

    @property
    def repel(self) -> bool:
        """Whether the dual problem sees known outliers too."""
        return getattr(self.classifier, "negatives", "ignore") == "repel"

    def formulation(self, axis: KernelAxis, samples: Any) -> Formulation:
        """What to solve on the kernel matrix of an axis."""
        solver = {name: getattr(self.classifier, name) for name in ("tol", "stopping", "max_iter")}
        C_negative = self.classifier.C_negative if samples.outliers else None
        return Formulation(self.classifier.classifier.name, tuple(axis.values), axis.parameter, **solver, C_negative=C_negative)


@dataclass
class Alone:
    """A candidate that shares nothing with others: fitted and scored as it is."""

    estimator: Any
    params: dict[str, Any]
    candidate: int

    def configured(self) -> Any:
        """A new estimator with the candidate's parameters."""
        return clone(self.estimator).set_params(**clone_values(self.params))


def plan(estimator: Any, candidates: Iterable[dict[str, Any]]) -> list[Shared | Alone]:
    """Group the candidates of a grid by what they share."""
    groups: dict[Any, list[tuple[int, dict[str, Any]]]] = defaultdict(list)
    names = _axis_names(estimator)
    for number, params in enumerate(candidates):
        structure = {name: value for name, value in params.items() if name not in names}
        groups[tuple((name, id(value)) for name, value in sorted(structure.items()))].append((number, params))
    return [part for members in groups.values() for part in _parts(estimator, names, members)]


def _parts(estimator: Any, names: dict[str, str], members: list[tuple[int, dict[str, Any]]]) -> list[Any]:
    """The Shared group of candidates that differ along the axes only, or each of them alone."""
    structure = {name: value for name, value in members[0][1].items() if name not in names}
    configured = clone(estimator).set_params(**clone_values(structure)) if structure else estimator
    shared = _shared(configured)
    alone = [Alone(estimator, params, number) for number, params in members]
    if shared is None or (structure and names != _axis_names(configured)):
        return alone
    kernel = as_kernel(shared.reference.kernel if shared.reference is not None else shared.classifier.kernel)
    axes: dict[Any, KernelAxis] = {}
    fixed = kernel.get_params(deep=False)
    for member in alone:
        along = {names[name]: value for name, value in member.params.items() if name in names}
        _place(axes, type(kernel), fixed, shared.classifier, along, member.candidate)
    shared.axes.extend(axis for axis in axes.values() if not _follows_new_samples(shared, axis.kernel))
    together = {candidate for axis in shared.axes for candidate in axis.candidates}
    shared.members.extend(member for member in alone if member.candidate in together)
    unshared = [member for member in alone if member.candidate not in together]
    return [shared, *unshared] if together else unshared


def _follows_new_samples(shared: Shared, kernel: Kernel) -> bool:
    """Whether the threshold comes from targets left out, which the paths of shared candidates do not have."""
    owner = kernel if shared.reference is None else as_kernel(shared.classifier.kernel)
    return resolved_threshold(shared.classifier.threshold, owner) == "loo"


def _place(
    axes: dict[Any, KernelAxis], make: type[Kernel], fixed: dict[str, Any], classifier: Any, along: dict[str, Any], number: int
) -> None:
    """Put a candidate on the axis of its kernel and of its parameter (nu or C)."""
    nu, C = along.pop("nu", classifier.nu), along.pop("C", getattr(classifier, "C", None))
    parameter, value = classifier.solved_parameter(nu, C)
    key = (parameter, tuple(sorted((name, _key(v)) for name, v in along.items())))
    if key not in axes:
        axes[key] = KernelAxis(make(**{**fixed, **along}), parameter)
    axes[key].candidates.append(number)
    axes[key].values.append(value)


def final_step(estimator: Any) -> Any:
    """The estimator itself, or the last step of a pipeline."""
    return _steps(estimator)[-1]


def _steps(estimator: Any) -> list[Any]:
    return [step for _, step in estimator.steps] if isinstance(estimator, Pipeline) else [estimator]


def _shared(estimator: Any) -> Shared | None:
    """The estimator's parts, if it is a classifier of this package on a kernel that can be shared; else None."""
    *prefix, classifier = (step for step in _steps(estimator) if step not in (None, "passthrough"))
    if not isinstance(classifier, OneClassClassifier):
        return None
    try:
        classifier._check_params()
        kernel, reference = as_kernel(classifier.kernel), None
        if isinstance(kernel, ReferenceFit):
            reference = kernel
        elif prefix and isinstance(prefix[-1], ReferenceMap) and type(kernel) is Linear:
            reference = prefix.pop()
        if reference is not None:
            check_floor(reference.eigenvalue_floor)
    except ValueError:
        return None  # its own fit says what is wrong
    return None if kernel.pairwise else Shared(prefix, tuple(map(_key, prefix)), reference, classifier)


def _axis_names(estimator: Any) -> dict[str, str]:
    """The grid's names for the axes (nu, C and the base kernel's own) and what they stand for."""
    shared = _shared(estimator)
    if shared is None:
        return {}
    names = [name for name, _ in estimator.steps] if isinstance(estimator, Pipeline) else []
    final = f"{names[-1]}__" if names else ""
    if shared.reference is None:
        kernel = f"{final}kernel__"
    elif isinstance(as_kernel(shared.classifier.kernel), ReferenceFit):
        kernel = f"{final}kernel__kernel__"
    else:
        kernel = f"{names[-2]}__kernel__"
    owned = as_kernel(shared.classifier.kernel if shared.reference is None else shared.reference.kernel).get_params(deep=False)
    parameters = [name for name in ("nu", "C") if name in shared.classifier.get_params(deep=False)]
    return {**{f"{final}{name}": name for name in parameters}, **{f"{kernel}{axis}": axis for axis in KERNEL_AXES if axis in owned}}


def clone_values(params: dict[str, Any]) -> dict[str, Any]:
    """Parameter values that a candidate may change without touching the grid's."""
    return {name: clone(value, safe=False) for name, value in params.items()}


def _key(value: Any) -> Any:
    """Equal for values that are the same: by parameters for estimators, by identity for what cannot be compared."""
    if isinstance(value, float):
        return value
    if hasattr(value, "get_params") and not isinstance(value, type):
        return type(value), tuple((name, _key(v)) for name, v in sorted(value.get_params(deep=False).items()))
    if isinstance(value, Kernel | np.ndarray | list | dict) or not getattr(value, "__hash__", None):
        return id(value)
    return value
