"""The eigenvalues of a reference map."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._core.unwrap import unwrap
from .regions import reference_map_of
from .style import BLUE, VERMILION, Display


@dataclass(kw_only=True, eq=False, repr=False)
class SpectrumDisplay(Display):
    """The eigenvalues that a reference map keeps, largest first.

    Parameters
    ----------
    eigenvalues : ndarray of shape (rank,)
        The eigenvalues that were kept.
    floor : float
        Eigenvalues below it were dropped.
    n_references : int
        The number of references, and so of eigenvalues before the small ones were dropped.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Where it was drawn.
    line_ : matplotlib line
        The eigenvalues.
    floor_line_ : matplotlib line or None
        The floor; None for a floor of 0, which a logarithmic axis cannot show.

    Examples
    --------
    >>> import numpy as np, refkernel as rk
    >>> from refkernel.plot import SpectrumDisplay
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = rk.SVDD(rk.ReferenceKernel(references="case4", random_state=0)).fit(X)
    >>> SpectrumDisplay.from_estimator(model).ax_.get_title()
    'rank 21 of 30 references'
    """

    eigenvalues: np.ndarray
    floor: float
    n_references: int

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Any = None, legend: bool = True) -> Self:
        """Draw the spectrum of a fitted model.

        Parameters
        ----------
        model : fitted estimator
            A ReferenceMap or ReferenceKernel, or a classifier, pipeline or search that holds one.
        """
        check_is_fitted(model)
        before, final = unwrap(model)
        if (found := reference_map_of([*before, final])) is None:
            raise ValueError(
                f"{type(model).__name__} has no ReferenceMap or ReferenceKernel, whose eigenvalues this display shows. "
                "Use, for example, SVDD(ReferenceKernel())."
            )
        fitted = found[1]
        display = cls(eigenvalues=fitted.eigenvalues_, floor=fitted.eigenvalue_floor, n_references=fitted.references_.shape[0])
        return display.plot(ax, legend=legend)

    def _draw(self) -> list[Any]:
        rank = len(self.eigenvalues)
        (self.line_,) = self.ax_.semilogy(np.arange(1, rank + 1), self.eigenvalues, "o-", color=BLUE, ms=3.5, lw=1, label="eigenvalues")
        self.floor_line_ = None
        if self.floor > 0:
            self.floor_line_ = self.ax_.axhline(self.floor, color=VERMILION, ls="--", lw=1.4, label=f"floor {self.floor:g}")
        self.ax_.locator_params(axis="x", integer=True)
        self.ax_.set(xlabel="number of the eigenvalue", ylabel="eigenvalue", title=f"rank {rank} of {self.n_references} references")
        return self._labelled()
