"""References of many rows: chosen from a sample, better than uniform draws, and as many as the spectrum asks for."""

from __future__ import annotations

import numpy as np
import pytest

import refkernel as rk
from refkernel.references import Auto, FarthestFirst, KMeans, LeverageScores, Subset

CENTRES = 6.0 * np.random.default_rng(0).normal(size=(40, 5))


def clusters(which, seed):
    """Rows of clusters by their numbers."""
    return CENTRES[which] + 0.3 * np.random.default_rng(seed).normal(size=(len(which), 5))


@pytest.mark.parametrize("strategy", [KMeans, LeverageScores, FarthestFirst])
def test_references_of_a_source_see_rare_clusters_that_uniform_draws_miss(strategy):
    rare = np.arange(4, 40)
    which = np.random.default_rng(1).choice(40, 6000, p=np.r_[np.full(4, 0.23), np.full(36, 0.08 / 36)])
    source, new = rk.sources.open_source(clusters(which, 1)), clusters(np.repeat(rare, 10), 2)

    def unseen(references):
        maps = [rk.ReferenceMap(rk.RBF(sigma=2.0), references, random_state=seed).fit(source) for seed in range(3)]
        return np.mean([fitted.residual(new).mean() for fitted in maps])

    assert unseen(strategy(60)) < 0.8 * unseen(Subset(60))


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
