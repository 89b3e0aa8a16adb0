"""What every detector derives from its scores and its threshold."""

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import OutlierMixin

from .validation import as_labels


class ThresholdMixin(OutlierMixin):
    """``decision_function``, ``predict`` and ``fit_predict``; a detector provides ``fit``, ``score_samples`` and ``offset_``."""

    offset_: float

    if not TYPE_CHECKING:  # detectors differ in what else they take

        def fit(self, X, y=None, sample_weight=None):
            """Learn from the target rows of X.

            Parameters
            ----------
            X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
                Training samples; the square kernel matrix for ``kernel="precomputed"``.
            y : array-like of shape (n_samples,), optional
                -1 marks known outliers, which never count as targets; all other rows are targets, labelled +1.
            sample_weight : array-like of shape (n_samples,), optional
                The weight of each row; a weight of 0 leaves it out.

            Returns
            -------
            self
                The fitted detector.
            """
            raise NotImplementedError

        def score_samples(self, X):
            """Compute the score of each sample; higher is more normal. It does not depend on the other samples.

            Parameters
            ----------
            X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
                Samples in rows.

            Returns
            -------
            ndarray of shape (n_samples,)
                The scores.
            """
            raise NotImplementedError

    def decision_function(self: Any, X: Any, **params: Any) -> np.ndarray:
        """Compute ``score_samples(X) - offset_``: at least 0 for samples that are accepted.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, as ``score_samples`` takes them.
        **params
            Passed to ``score_samples``; a calibrated detector takes ``groups``, as its ``p_values`` does, for their own thresholds.

        Returns
        -------
        ndarray of shape (n_samples,)
            The decision values.
        """
        scores = self.score_samples(X, **params)  # first: it says whether the detector is fitted
        with np.errstate(over="ignore"):
            return finite_scores(scores - self.offset_)

    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """Label new samples: +1 for those accepted, -1 for outliers. Of training rows it flags too few: see ``fit_predict``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples, as ``score_samples`` takes them.
        **params
            Passed to ``score_samples``; a calibrated detector takes ``groups``, as its ``p_values`` does, for their own thresholds.

        Returns
        -------
        ndarray of shape (n_samples,)
            +1 where ``decision_function`` is at least 0, else -1.
        """
        return as_labels(self.decision_function(X, **params) >= 0)

    def fit_predict(self: Any, X: Any, y: npt.ArrayLike | None = None, **params: Any) -> np.ndarray:
        """Fit, and label the training rows. What a threshold promises, it promises for new samples, not for these rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, as ``fit`` takes them.
        y : array-like of shape (n_samples,), optional
            -1 marks known outliers.
        **params
            Passed to ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,)
            +1 for samples that are accepted, -1 for outliers.
        """
        return self.fit(X, y, **params).predict(X)


def finite_scores(scores: Any) -> Any:
    """Scores that overflow become the lowest (or highest) finite number; NaN counts as lowest. Lazy arrays stay as they are."""
    if not isinstance(scores, np.ndarray) or np.isfinite(scores).all():
        return scores
    most = np.finfo(np.float64).max
    return np.nan_to_num(scores, nan=-most, posinf=most, neginf=-most)
