"""References of many rows: chosen from a sample, better than uniform draws, and as many as the spectrum asks for."""

from __future__ import annotations

import numpy as np
import pytest

import refkernel as rk
from refkernel.references import Auto, FarthestFirst, KMeans, LeverageScores, Subset


def clusters(n, seed):
    """Many rows in a few clusters, few in many others: what uniform draws miss."""
    rng = np.random.default_rng(seed)
    centres = 6.0 * np.random.default_rng(0).normal(size=(40, 5))
    share = np.r_[np.full(4, 0.23), np.full(36, 0.08 / 36)]
    return centres[rng.choice(40, n, p=share)] + 0.3 * rng.normal(size=(n, 5))


@pytest.mark.parametrize("strategy", [KMeans, LeverageScores, FarthestFirst])
def test_references_of_a_source_leave_less_unseen_than_uniform_draws(strategy):
    source, new = rk.sources.open(clusters(30_000, 1)), clusters(3000, 2)

    def unseen(references):
        kernel = rk.RBF(sigma=2.0)
        return np.mean([rk.ReferenceMap(kernel, references, random_state=seed).fit(source).residual(new).mean() for seed in range(3)])

    assert unseen(strategy(60)) < unseen(Subset(60))


def test_auto_takes_more_references_where_the_spectrum_decays_slowly():
    rng = np.random.default_rng(0)
    few, many = (rk.ReferenceMap(references="auto", random_state=0).fit(rng.normal(size=(1500, d))) for d in (1, 6))
    assert 10 <= len(few.references_) < len(many.references_)
    assert few.choice_.startswith(f"{len(few.references_)} references: ")
    assert "of the spectrum" in many.choice_


@pytest.mark.parametrize(
    ("limit", "m", "why"), [({"most": 15}, 15, "most=15"), ({"memory": 0.1}, 12, "memory=0.1 MB for the features of 2,000 rows")]
)
def test_auto_keeps_within_its_limits_and_says_so(limit, m, why):
    X = np.random.default_rng(0).normal(size=(2000, 6))
    fitted = rk.ReferenceMap(references=Auto(**limit), random_state=0).fit(X)
    assert len(fitted.references_) == m
    assert why in fitted.choice_


@pytest.mark.parametrize("explained", [0.0, 1.0, -1, None])
def test_auto_refuses_a_share_that_is_none(explained):
    with pytest.raises(ValueError, match="explained="):
        rk.ReferenceMap(references=Auto(explained=explained)).fit(np.eye(5))
