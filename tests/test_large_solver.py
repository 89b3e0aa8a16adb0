"""The solver by passes over explicit features: the same optimum as pair moves, whatever the blocks."""

from __future__ import annotations

import numpy as np
import pytest

import refkernel as rk
from refkernel._core.gram import Features
from refkernel._core.problem import CLASSIFIERS
from refkernel._core.solver import solve
from refkernel.large import fit as solver
from refkernel.large import rows
from refkernel.large import smoothed_newton as search

DATA = {
    "normal": lambda rng, Phi: Phi,
    "integers": lambda rng, Phi: np.round(2.0 * Phi),
    "repeated rows": lambda rng, Phi: Phi[rng.integers(0, len(Phi) // 50, len(Phi))],
    "heavy tails": lambda rng, Phi: rng.standard_t(2, size=Phi.shape),
    "far from the origin": lambda rng, Phi: Phi + 10.0,
    "centred": lambda rng, Phi: Phi - Phi.mean(axis=0),
    "of low rank": lambda rng, Phi: Phi[:, :1] @ rng.normal(size=(1, Phi.shape[1])),
}


@pytest.fixture
def small_limits(monkeypatch):
    """All stages of a search (sample, screens, recursion) on problems of a few thousand rows."""
    monkeypatch.setattr(search, "FEW", 60)
    for module in (search, solver):
        monkeypatch.setattr(module, "SAMPLE", 250)
        monkeypatch.setattr(module, "MANY", 1000)
    monkeypatch.setattr(rows, "HELD_ENTRIES", 1 << 10)


def problem_of(name, seed, data, weighted=False, repelled=0):
    rng = np.random.default_rng(seed)
    n, r = int(rng.choice([300, 1500, 4000])), int(rng.choice([1, 4, 15]))
    held = Features(np.ascontiguousarray(DATA[data](rng, rng.normal(size=(n, r)))))
    weight = rng.uniform(0.1, 2.0, n) if weighted else np.ones(n)
    weight[n - repelled :] *= -1.0
    nu = float(rng.choice([0.0103, 0.1037, 0.5031]))
    bound = nu * weight[weight > 0].sum()
    return held, CLASSIFIERS[name].problem(held.diag, bound, weight, 1.0 / (nu * repelled) if repelled else 0.0)


def assert_same_decisions(name, problem, held):
    found, expected = solver.solve_features(problem, held), solve(problem, held, tol=1e-10)
    assert found.converged
    assert found.gap <= 1e-6
    assert ((problem.lower <= found.b) & (found.b <= problem.upper)).all()
    assert found.b.sum() == pytest.approx(problem.total, rel=1e-9)
    np.testing.assert_allclose(found.G, held.Phi @ (found.b @ held.Phi) + problem.p, atol=1e-9 * max(found.size_of_sums, held.diag.max()))
    size = CLASSIFIERS[name].slope * max(expected.size_of_sums, held.diag.max())
    np.testing.assert_allclose(found.G - found.rho, expected.G - expected.rho, rtol=0.0, atol=1e-8 * size)


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("seed", range(3))
def test_passes_and_pair_moves_find_the_same_decisions(small_limits, name, data, seed):
    held, problem = problem_of(name, seed, data, weighted=seed == 1)
    assert_same_decisions(name, problem, held)


@pytest.mark.parametrize("seed", range(4))
def test_known_outliers_repel_alike(small_limits, seed):
    held, problem = problem_of("svdd", seed, "normal", repelled=25)
    assert_same_decisions("svdd", problem, held)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_weight_at_its_bound_is_no_special_case_for_callers(name):
    rng = np.random.default_rng(0)
    held = Features(rng.normal(size=(2000, 3)) + 1.0)
    problem = CLASSIFIERS[name].problem(held.diag, 2000.0, np.ones(2000))
    assert_same_decisions(name, problem, held)


def test_blocks_do_not_change_the_answer(small_limits, monkeypatch):
    held, problem = problem_of("svdd", 7, "normal")
    first = solver.solve_features(problem, held)
    monkeypatch.setattr(rows, "HELD_ENTRIES", 1 << 20)
    second = solver.solve_features(problem, held)
    np.testing.assert_allclose(first.G, second.G, atol=1e-10)


@pytest.mark.parametrize("make", [rk.SVDD, rk.OneClassSVM])
def test_an_estimator_on_many_rows_is_certified_and_equals_pair_moves(make):
    Phi = np.random.default_rng(3).normal(size=(40_000, 4)) + 3.0
    model = make("linear", nu=0.05).fit(Phi)
    pairs = make("linear", nu=0.05, tol=1e-10, max_iter=100_000_000).fit(Phi)  # a limit on moves asks for moves
    assert model.n_iter_ < 20
    assert model.duality_gap_ <= 1e-6
    size = np.abs(pairs.score_samples(Phi)).max()
    np.testing.assert_allclose(model.decision_function(Phi), pairs.decision_function(Phi), rtol=0.0, atol=1e-8 * size)
    assert np.mean(model.predict(Phi) == -1) <= 0.05
