"""The dual problem and its solver: every solution carries a certificate, which naive code checks here."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize
from sklearn.svm import OneClassSVM

from refkernel._core import certificate, dense, newton, smo, solver
from refkernel._core import gram as sources
from refkernel._core import working_set as working_sets
from refkernel._core.gram import Cached, Dense, Features
from refkernel._core.problem import OCSVM, SVDD, DualProblem
from refkernel._core.solver import solve
from refkernel.kernels import RBF, Linear
from refkernel.maps import ReferenceKernel

TOL = 1e-6
every_seed = pytest.mark.parametrize("seed", range(5))


def one_class_svm(diag, nu, weight):
    return OCSVM.problem(diag, nu * weight.sum(), weight)


def svdd(diag, C, weight):
    return SVDD.problem(diag, 1.0 / C, weight)


def signed_svdd(diag, C, C_outlier, is_outlier):
    """SVDD with negatives, in signed weights: targets in [0, C], outliers in [-C_outlier, 0]."""
    zeros = np.zeros(diag.size)
    return DualProblem(-0.5 * diag, np.where(is_outlier, -C_outlier, zeros), np.where(is_outlier, zeros, C), 1.0)


def random_problem(rng, n, K):
    """One of the three formulations, with random nu or C and, half of the time, sample weights."""
    kind = rng.integers(3)
    weight = rng.uniform(0.05, 3.0, n) if rng.random() < 0.5 else np.ones(n)
    nu = rng.choice([rng.uniform(0.01, 1.0), 1.0, 1.0 / n])
    if kind == 0:
        return one_class_svm(np.diagonal(K), nu, weight)
    if kind == 1:
        return svdd(np.diagonal(K), 1.0 / (nu * weight.sum()), weight)
    is_outlier = rng.random(n) < 0.3
    is_outlier[rng.integers(n)] = False
    return signed_svdd(np.diagonal(K), 1.0 / (nu * (~is_outlier).sum()), rng.uniform(0.01, 1.0), is_outlier)


def random_kernel(rng, n):
    """A positive semi-definite matrix: full rank, rank-deficient, with repeated rows, of equal rows, centred or zero; of any size.

    Features are centred before their product: of J K J, where the rows of K are equal, only rounding is left, with eigenvalues of
    either sign that depend on the processor.
    """
    d = rng.integers(1, 6)
    X = rng.normal(size=(n, d))
    X = {0: X, 1: np.round(X), 2: X[rng.integers(0, n, n)], 3: np.repeat(X[:1], n, axis=0), 4: X + 100.0, 5: X}[rng.integers(6)]
    linear, sigma, centred = rng.random() < 0.5, rng.uniform(0.1, 10.0), rng.random() < 0.2
    if centred:
        Phi = X if linear else np.cos(X @ rng.normal(size=(d, 30)) / sigma)
        Phi = np.zeros_like(Phi) if (Phi == Phi[0]).all() else Phi - Phi.mean(axis=0)  # the mean of equal rows may be off by a rounding
        K = Phi @ Phi.T
    else:
        K = X @ X.T if linear else RBF(sigma=sigma)(X)
    return 0.5 * (K + K.T) * rng.choice([1.0, 1.0, 1e-6, 1e-12, 1e-30, 1e6, 1e30])


def assert_optimal(problem, K, solution, tol=TOL):
    """Feasible, within the promised gap and on the KKT conditions, by loops and exactly rounded sums of our own."""
    b, n = solution.b, problem.p.size
    assert solution.converged
    assert solution.gap <= tol
    assert (b >= problem.lower).all()
    assert (b <= problem.upper).all()
    weights = math.fsum(abs(b))
    assert abs(math.fsum(b) - problem.total) <= 1e-12 * max(weights, abs(problem.total))

    G = [math.fsum(K[i] * b) + problem.p[i] for i in range(n)]
    size = max(K[i, i] for i in range(n))
    rounding = 1e-13 * size * weights  # of a gradient: n products, and what n moves leave behind
    room = math.fsum(problem.upper - problem.lower)
    gap = min(
        math.fsum((b[i] - problem.lower[i]) * (G[i] - r) if G[i] > r else (problem.upper[i] - b[i]) * (r - G[i]) for i in range(n))
        for r in G
    )
    quadratic = math.fsum(b[i] * math.fsum(K[i] * b) for i in range(n))
    spread = 0.5 * abs(math.fsum(b) * math.fsum(b * np.diagonal(K)) - quadratic)
    scale = max(spread, 0.5e-6 * weights * math.fsum(abs(b * np.diagonal(K))))  # the floor that the solver documents
    assert gap <= tol * scale * (1 + 1e-6) + rounding * room
    for i in range(n):
        assert b[i] == problem.upper[i] or (G[i] - solution.rho) * problem_mass(problem, b) >= -tol * scale - rounding * room
        assert b[i] == problem.lower[i] or (G[i] - solution.rho) * problem_mass(problem, b) <= tol * scale + rounding * room


def problem_mass(problem, b):
    return math.fsum(b - problem.lower)


def objective(problem, K, b):
    return 0.5 * b @ K @ b + problem.p @ b


def random_feasible(rng, problem):
    """A mixture of vertices of the feasible set (clipped: its rounding may leave the bounds)."""
    n, bounds = problem.p.size, (np.asarray(problem.lower, float), np.asarray(problem.upper, float))
    vertices = [dense.first_at_bound(*bounds, problem.total, rng.permutation(n)) for _ in range(4)]
    return np.clip(rng.dirichlet(np.ones(4)) @ vertices, problem.lower, problem.upper)


@pytest.mark.parametrize("seed", range(12))
def test_every_solution_of_random_problems_is_certified(seed):
    """1,200 random problems of every kind, n from 1 to 40: feasible, gap within tol, KKT conditions hold."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        n = int(rng.choice([1, 2, 3, rng.integers(4, 41)]))
        K = random_kernel(rng, n)
        problem = random_problem(rng, n, K)
        assert_optimal(problem, K, solve(problem, Dense(K), tol=TOL))


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(
    X=st.integers(1, 8).flatmap(lambda n: st.lists(st.lists(st.integers(-3, 3), min_size=2, max_size=2), min_size=n, max_size=n)),
    weights=st.lists(st.integers(1, 5), min_size=8, max_size=8),
    nu=st.floats(0.01, 1.0),
    exponent=st.integers(-30, 30),
    formulation=st.sampled_from(["one-class SVM", "SVDD", "SVDD with negatives"]),
    negatives=st.integers(0, 127),
    rbf=st.booleans(),
)
def test_every_solution_that_hypothesis_asks_for_is_certified(X, weights, nu, exponent, formulation, negatives, rbf):
    """Small integer data, full of repeated and dependent rows, at any size of the kernel: the certificate always holds."""
    X = np.array(X, dtype=float)
    n = len(X)
    K = (RBF(sigma=1.0)(X) if rbf else X @ X.T) * 10.0**exponent
    w = np.array(weights[:n], dtype=float)
    is_outlier = np.array([False] + [bool(negatives >> i & 1) for i in range(n - 1)])
    problem = {
        "one-class SVM": lambda: one_class_svm(np.diagonal(K), nu, w),
        "SVDD": lambda: svdd(np.diagonal(K), 1.0 / (nu * w.sum()), w),
        "SVDD with negatives": lambda: signed_svdd(np.diagonal(K), 1.0 / (nu * (~is_outlier).sum()), nu, is_outlier),
    }[formulation]()
    assert_optimal(problem, K, solve(problem, Dense(K), tol=TOL))


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-8, 1e-10])
@every_seed
def test_gap_follows_the_tolerance_that_was_asked(tol, seed):
    """Looser and tighter tolerances than the default are kept too."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    K = RBF(sigma=1.0)(X)
    problem = random_problem(rng, 60, K)
    assert_optimal(problem, K, solve(problem, Dense(K), tol=tol), tol)


@pytest.mark.parametrize("seed", range(25))
def test_objective_equals_that_of_scipy(seed):
    """SciPy's general solvers find no better point, and the gap bounds the distance to theirs."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    X = rng.normal(size=(n, 3))
    K = RBF(sigma=1.0)(X) if seed % 2 else X @ X.T
    problem = random_problem(rng, n, K)
    ours = solve(problem, Dense(K), tol=TOL)
    theirs = minimize(
        lambda b: objective(problem, K, b),
        random_feasible(rng, problem),
        jac=lambda b: K @ b + problem.p,
        method="SLSQP",
        bounds=list(zip(problem.lower, problem.upper, strict=True)),
        constraints={"type": "eq", "fun": lambda b: b.sum() - problem.total, "jac": lambda b: np.ones((1, n))},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    f = objective(problem, K, ours.b)
    # SLSQP keeps its constraint to about 1e-12, worth less than 1e-9 of an objective of size 1 to 10
    assert f <= theirs.fun + 1e-9
    assert f - ours.gap * ours.scale <= theirs.fun + 1e-9
    assert f == pytest.approx(theirs.fun, abs=1e-6)


def test_objective_equals_that_of_an_interior_point_method():
    """A second oracle, of another kind: SciPy's trust-constr on a problem with negatives."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(7, 2))
    K = RBF(sigma=0.7)(X)
    problem = signed_svdd(np.diagonal(K), 0.4, 0.3, np.arange(7) > 4)
    theirs = minimize(
        lambda b: objective(problem, K, b),
        random_feasible(rng, problem),
        jac=lambda b: K @ b + problem.p,
        hess=lambda b: K,
        method="trust-constr",
        bounds=list(zip(problem.lower, problem.upper, strict=True)),
        constraints=LinearConstraint(np.ones((1, 7)), problem.total, problem.total),
        options={"gtol": 1e-10, "xtol": 1e-12, "maxiter": 2000},
    )
    assert objective(problem, K, solve(problem, Dense(K)).b) == pytest.approx(theirs.fun, abs=1e-6)  # the barrier's own precision


@pytest.mark.parametrize("factor", [2.0**-100, 2.0**-20, 2.0**20, 2.0**100])
@every_seed
def test_kernel_times_a_power_of_two_gives_the_same_weights_bit_by_bit(factor, seed):
    """Nothing in the solver is absolute: a factor that rounds nothing changes nothing."""
    rng = np.random.default_rng(seed)
    K = RBF(sigma=1.0)(rng.normal(size=(40, 3)))
    problem = random_problem(rng, 40, K)
    scaled = DualProblem(problem.p * factor, problem.lower, problem.upper, problem.total)
    plain, other = solve(problem, Dense(K)), solve(scaled, Dense(K * factor))
    np.testing.assert_array_equal(other.b, plain.b)
    assert other.rho == plain.rho * factor
    assert (other.gap, other.n_iter) == (plain.gap, plain.n_iter)


@pytest.mark.parametrize("factor", [1e-250, 1e-150, 1e-6, 1e-3, 1e7, 1e150, 1e250])
@every_seed
def test_kernel_times_any_factor_gives_the_same_weights(factor, seed):
    """A multiple of the kernel is the same problem, from one end of the double range to the other."""
    rng = np.random.default_rng(seed)
    K = RBF(sigma=1.0)(rng.normal(size=(40, 3)))
    problem = random_problem(rng, 40, K)
    scaled = DualProblem(problem.p * factor, problem.lower, problem.upper, problem.total)
    plain, other = solve(problem, Dense(K)), solve(scaled, Dense(K * factor))
    assert other.converged
    assert other.gap <= TOL
    # weights are known to sqrt(gap), and violations are driven 100 times below the gap's need
    np.testing.assert_allclose(other.b, plain.b, rtol=0, atol=1e-6 * np.abs(plain.b).max())
    np.testing.assert_allclose(other.G / factor, plain.G, rtol=0, atol=1e-8 * np.abs(plain.b).sum())


@pytest.mark.parametrize("seed", range(10))
def test_warm_start_from_any_feasible_point_gives_the_same_solution(seed):
    """The optimum does not depend on where the search begins, and the optimum itself is recognised at once."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 50))
    K = RBF(sigma=1.0)(rng.normal(size=(n, 3)))
    problem = random_problem(rng, n, K)
    cold = solve(problem, Dense(K))
    for _ in range(3):
        start = random_feasible(rng, problem)
        before = start.copy()
        warm = solve(problem, Dense(K), start=start)
        np.testing.assert_array_equal(start, before)
        assert_optimal(problem, K, warm)
        assert abs(objective(problem, K, warm.b) - objective(problem, K, cold.b)) <= TOL * cold.scale
        np.testing.assert_allclose(warm.G - warm.rho, cold.G - cold.rho, rtol=0, atol=1e-6 * np.abs(cold.b).sum())
    again = solve(problem, Dense(K), start=cold.b)
    assert again.n_iter == 0
    np.testing.assert_allclose(again.b, cold.b, rtol=0, atol=1e-9 * np.abs(cold.b).max())


@pytest.mark.parametrize(
    "start", [[0.5, 0.5, 0.5], [1.2, -0.2, 0.0], [0.8, 0.2, 0.0], [0.5, 0.5], [math.nan, 0.5, 0.5], [math.inf, 0.0, 0.0]]
)
def test_infeasible_start_is_refused(start):
    """Weights outside their bounds, of a wrong sum, number or kind are no start."""
    with pytest.raises(ValueError, match="start is not feasible: weights must lie within their bounds and sum to 1"):
        solve(svdd(np.ones(3), 0.6, np.ones(3)), Dense(np.eye(3)), start=start)


@pytest.mark.parametrize("total", [-0.1, 3.1, math.nan])
def test_infeasible_problem_is_refused(total):
    """Bounds that cannot sum to the total are named with what they can sum to."""
    with pytest.raises(ValueError, match=r"Infeasible: weights within their bounds sum to 0 … 3, not to"):
        DualProblem(np.zeros(3), np.zeros(3), np.ones(3), total)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy announces the overflow before the error does
def test_kernel_that_overflows_is_refused():
    """NaN or infinity in the gradient stops the solver with the way out."""
    K = np.array([[1.0, np.inf], [np.inf, 1.0]])
    with pytest.raises(ValueError, match=r"overflows or is NaN on the training samples\. Scale the data"):
        solve(one_class_svm(np.ones(2), 0.5, np.ones(2)), Dense(K))


@pytest.mark.parametrize("moves", [0, 1, 5])
def test_move_limit_is_kept_and_told(moves):
    """max_iter bounds the moves; the solution then says that it has not converged, and its gap is still a true bound."""
    rng = np.random.default_rng(0)
    K = RBF(sigma=1.0)(rng.normal(size=(60, 3)))
    problem = one_class_svm(np.diagonal(K), 0.4, np.ones(60))
    stopped, best = solve(problem, Dense(K), max_iter=moves, tol=1e-9), solve(problem, Dense(K))
    assert stopped.n_iter <= moves
    assert stopped.gap > 1e-9
    assert not stopped.converged
    assert objective(problem, K, stopped.b) - stopped.gap * stopped.scale <= objective(problem, K, best.b)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_everything_at_the_bound_is_solved_without_a_move(n):
    """nu = 1 leaves one feasible point: all weights at their bound."""
    K = RBF(sigma=1.0)(np.random.default_rng(0).normal(size=(n, 2)))
    solution = solve(one_class_svm(np.ones(n), 1.0, np.ones(n)), Dense(K))
    np.testing.assert_allclose(solution.b, 1.0, rtol=1e-12)
    assert solution.gap == pytest.approx(0.0, abs=1e-12)


def test_two_points_have_the_solution_of_geometry():
    """The smallest ball around two points is centred between them, its radius half their distance."""
    X = np.array([[0.0, 0.0], [6.0, 8.0]])
    solution = solve(svdd((X**2).sum(axis=1), 1.0, np.ones(2)), Dense(X @ X.T))
    np.testing.assert_allclose(solution.b, [0.5, 0.5], rtol=1e-9)
    assert solution.quadratic - 2 * solution.rho == pytest.approx(25.0)


def family(classifier, bounds, **options):
    """Problems without outliers."""
    return solver.Family(classifier, bounds, np.zeros(len(bounds)), **options)


@pytest.fixture
def all_rows():
    """all_rows(X, cache): the same linear kernel as a matrix, as features and as rows on demand, with memory for ``cache`` of them."""

    def build(X, cache):
        return [Dense(X @ X.T), Features(X), Cached(Linear(), X, cache_size=cache * 8 * len(X) / 1e6)]

    return build


@every_seed
@pytest.mark.parametrize("capacity", [24, 25])
@pytest.mark.parametrize("block_entries", [1, 40, 1 << 17])
def test_dense_features_and_cached_rows_agree(seed, capacity, block_entries, all_rows, monkeypatch):
    """Every way to hold K gives the same diagonal, blocks and products, in any order of requests, whether rows are kept or not."""
    monkeypatch.setattr(sources, "BLOCK_VALUES", block_entries)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 3))
    K = X @ X.T
    for rows in all_rows(X, capacity):
        assert rows.n == 25
        np.testing.assert_allclose(rows.diag, np.diagonal(K), rtol=1e-12)
        np.testing.assert_allclose(rows.whole(), K, atol=1e-12)
        for _ in range(12):
            W = rng.permutation(25)[: rng.integers(1, 26)]
            v, G = rng.normal(size=W.size), rng.normal(size=25)
            expected = G + K[:, W] @ v
            np.testing.assert_allclose(rows.block(W), K[np.ix_(W, W)], atol=1e-12)
            np.testing.assert_allclose(rows.times(W, v), K[:, W] @ v, atol=1e-12)
            rows.add(G, W, v)
            np.testing.assert_allclose(G, expected, atol=1e-12)


@pytest.mark.parametrize(("cache", "expected"), [(6, [0, 1, 2, 3]), (5, [0, 1, 2, 0, 3, 0, 2, 1])])
def test_a_row_is_computed_once_if_there_is_room_for_all(cache, expected):
    """With less room each is computed whenever it is needed."""
    computed = []

    class Counting(Linear):
        def __call__(self, X, Z=None):
            computed.extend(Z[:, 0].astype(int).tolist())
            return super().__call__(X, Z)

    X = np.arange(6.0)[:, None]
    rows, G = Cached(Counting(), X, cache * 8 * 6 / 1e6), np.zeros(6)
    for row in (0, 1, 2, 0, 3, 0, 2, 1):
        rows.add(G, np.array([row]), np.ones(1))
    assert computed == expected
    np.testing.assert_allclose(G, X[:, 0] * (0 + 1 + 2 + 0 + 3 + 0 + 2 + 1))


@every_seed
def test_rows_on_demand_are_fewer_than_the_whole_kernel_and_give_its_solution(seed):
    """Where few samples carry weight, a kernel that computes its values computes less than half of them."""
    values = []

    class Counting(RBF):
        def __call__(self, X, Z=None):
            values.append(len(X) * (len(X) if Z is None else len(Z)))
            return super().__call__(X, Z)

    n = solver.ON_DEMAND + 200
    X = np.random.default_rng(seed).normal(size=(n, 4))
    K, problem = RBF(sigma=3.0)(X), one_class_svm(np.ones(n), 0.05, np.ones(n))
    found = solve(problem, Cached(Counting(sigma=3.0), X, 200.0))
    assert_optimal(problem, K, found)
    assert sum(values) < n * n / 2


@pytest.mark.parametrize("working_set", [2, 8, 30])
@pytest.mark.parametrize("cache", [1, 80])
@every_seed
def test_working_sets_give_the_solution_of_the_whole(working_set, cache, seed, all_rows, monkeypatch):
    """Beyond WHOLE samples the solver moves a working set at a time, and ends at the same certified optimum."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 4)) + 1.0
    K = X @ X.T
    problem = random_problem(rng, 80, K)
    whole = solve(problem, Dense(K))
    monkeypatch.setattr(solver, "WHOLE", 10)
    monkeypatch.setattr(working_sets, "WORKING_SET", working_set)
    monkeypatch.setattr(solver, "START_SAMPLE", 16)
    for rows in all_rows(X, cache):
        parts = solve(problem, rows)
        assert_optimal(problem, K, parts)
        # decision values: of size Σ|b| · K, known to about the square root of the gap
        np.testing.assert_allclose(
            parts.G - parts.rho, whole.G - whole.rho, rtol=0, atol=1e-5 * np.abs(whole.b).sum() * whole.size_of_sums / np.abs(whole.b).sum()
        )


@pytest.mark.parametrize("whole", [10, 1024])
def test_libsvm_rule_starts_with_the_first_samples_at_the_bound(whole, monkeypatch):
    """LIBSVM begins with the first nu·n weights at 1 and, where the kernel is smaller than tol, ends there."""
    monkeypatch.setattr(solver, "WHOLE", whole)
    K = 1e-4 * RBF(sigma=1.0)(np.random.default_rng(0).normal(size=(25, 2)))
    solution = solve(one_class_svm(np.diagonal(K), 0.3, np.ones(25)), Dense(K), stopping="libsvm", tol=1e-3)
    assert solution.n_iter == 0
    assert solution.converged
    np.testing.assert_allclose(solution.b, [1.0] * 7 + [0.5] + [0.0] * 17, rtol=1e-12, atol=1e-12)


@every_seed
@pytest.mark.parametrize("nu", [0.1, 0.37])
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_libsvm_rule_gives_the_weights_of_libsvm(seed, nu, tol):
    """With its start, its rule and its choice of pairs the path is that of LIBSVM (through scikit-learn, no shrinking)."""
    X = np.random.default_rng(seed).normal(size=(53, 3))
    K = RBF(sigma=1.5)(X)
    theirs = OneClassSVM(kernel="precomputed", nu=nu, tol=tol, shrinking=False).fit(K)
    expected = np.zeros(53)
    expected[theirs.support_] = theirs.dual_coef_[0]
    ours = solve(one_class_svm(np.diagonal(K), nu, np.ones(53)), Dense(K), stopping="libsvm", tol=tol)
    # the same moves from the same start on the same single-precision values: equal but for the rounding of sums. 53 samples, because
    # scikit-learn sums up nu n in a way that leaves a weight of 1e-15 where it is whole; after hundreds of moves rounding may part the two.
    # A pair that is chosen between two of nearly equal gain depends on the processor, and so does the number of moves
    np.testing.assert_allclose(ours.b, expected, rtol=0, atol=1e-9 if tol >= 1e-3 else 1e-4)
    assert ours.rho == pytest.approx(-theirs.intercept_[0], abs=1e-6)


@every_seed
@pytest.mark.parametrize("whole", [10, 1024])
def test_libsvm_rule_stops_at_an_absolute_violation(seed, whole, monkeypatch):
    """At the end the largest gradient that may shrink exceeds the smallest that may grow by less than tol."""
    monkeypatch.setattr(solver, "WHOLE", whole)
    rng = np.random.default_rng(seed)
    K = 50.0 * RBF(sigma=1.0)(rng.normal(size=(60, 3)))
    problem = random_problem(rng, 60, K)
    solution = solve(problem, Dense(K), stopping="libsvm", tol=1e-3)
    G = K @ solution.b + problem.p
    assert G[solution.b > problem.lower].max(initial=-np.inf) - G[solution.b < problem.upper].min(initial=np.inf) < 1e-3 + 1e-9


@pytest.fixture
def state():
    """state(seed): K, diag, b, G, lower, upper, p at a random feasible point of a random problem with negatives."""

    def build(seed, n=18):
        rng = np.random.default_rng(seed)
        K = RBF(sigma=1.0)(rng.normal(size=(n, 3)))
        problem = signed_svdd(np.diagonal(K).copy(), 0.3, 0.2, rng.random(n) < 0.25)
        b = random_feasible(rng, problem)
        return K, np.diagonal(K).copy(), b, K @ b + problem.p, problem.lower, problem.upper, problem.p

    return build


@every_seed
@pytest.mark.parametrize("scale", [0.1, 1.0, 100.0, 1000.0])
def test_coinciding_samples_do_not_stall_the_solver(seed, scale):
    """Many copies of few samples, centred: any weights of the copies will do, and the solver must not go on trying them all."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(80, 4)).astype(float)
    kernel = ReferenceKernel(RBF(scale=scale), references="subset", random_state=seed).fit(X)
    K = kernel(X)
    for nu in (0.02, 0.05, 0.1, 0.3, 0.6):
        solution = solve(one_class_svm(np.diagonal(K).copy(), nu, np.ones(80)), Dense(K))
        assert solution.converged
        assert solution.gap <= TOL
        assert solution.n_iter < 20_000  # some thousand moves; without the gap's say it was all ten million


@every_seed
@pytest.mark.parametrize("stopping", solver.STOPPING_RULES)
@pytest.mark.parametrize("nu", [0.1, 0.5, 1.0])
def test_a_fit_begins_where_a_path_of_one_problem_does(nu, stopping, seed):
    """Without a move, both leave the weights they begin with, to the last bit: NumPy sorts for a fit, compiled code for a path."""
    X = np.random.default_rng(seed).normal(size=(40, 3))
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    (total,), (upper,) = OCSVM.scaled(np.array([nu * 40]))
    alone = solve(DualProblem(np.zeros(40), np.zeros(40), np.full(40, upper), total), Dense(K), stopping=stopping, max_iter=0)
    on_path = solver.solve_path(K[None], [family(OCSVM, np.array([nu * 40]), stopping=stopping, max_iter=0)])
    np.testing.assert_array_equal(alone.b, on_path.b[0, 0])


def total_changed_in_order(weights, order, lower, upper, total):
    """The oracle of ``change_total``: raise weights to their bound in this order, or lower them in the reverse one."""
    b = np.minimum(weights, upper)
    left = total
    for weight in b:
        left -= weight
    for t in order if left > 0 else order[::-1]:
        bound = upper if left > 0 else lower
        step = min(bound - b[t], left) if left > 0 else max(bound - b[t], left)
        b[t] = bound if step == bound - b[t] else b[t] + step
        left -= step
    return b


@every_seed
def test_a_sum_is_changed_in_the_order_of_gradients(seed):
    """Of equal gradients the first is raised first, and the last lowered first."""
    for total in (0.2, 1.0, 3.0):
        weights = np.random.default_rng(seed).uniform(0, 0.3, 18)
        wanted = np.random.default_rng(seed + 1).integers(0, 6, 18).astype(float)  # gradients with ties
        moved = weights.copy()
        smo.change_total(moved, wanted, np.zeros(18), np.full(18, 0.2), total)
        expected = total_changed_in_order(weights, np.argsort(wanted, kind="stable"), 0.0, 0.2, total)
        np.testing.assert_allclose(moved, expected, rtol=0, atol=1e-15)
        assert moved.sum() == pytest.approx(total, abs=1e-12)


def test_libsvm_rule_is_strict():
    """LIBSVM goes on while the violation equals its tolerance: here that is the first one, after its own start."""
    K = np.diag([2.0, 1.0, 1.0, 1.0])
    found = solve(one_class_svm(np.diagonal(K).copy(), 0.5, np.ones(4)), Dense(K), tol=2.0, stopping="libsvm")
    theirs = OneClassSVM(kernel="precomputed", nu=0.5, tol=2.0).fit(K)
    b = np.zeros(4)
    b[theirs.support_] = theirs.dual_coef_[0]
    np.testing.assert_allclose(found.b, b, atol=1e-6)  # LIBSVM's kernel values are single


def test_nan_ends_the_solver():
    """Weights of a kernel matrix with NaN are not called solved, and do not go on for ever."""
    K = np.full((3, 3), np.nan)
    B, facts, bounds = np.array([[1.0, 0.5, 0.0]]), np.empty((1, dense.ALL_FACTS)), (np.zeros((1, 3)), np.ones((1, 3)))
    rule = np.array([1.5]), True, False, 1e-6, 1e-12, 10**9
    dense.solve_dense(K, np.ones(3), np.zeros(3), *bounds, *rule, B, np.full((1, 3), np.nan), facts)
    assert not facts[0, certificate.FINITE]


@every_seed
@pytest.mark.parametrize("formulation", ["one-class SVM", "SVDD"])
def test_path_gives_the_solutions_of_its_problems(formulation, seed):
    """A family of problems solved one from the other gives what each gives alone."""
    K = RBF(sigma=1.0)(np.random.default_rng(seed).normal(size=(40, 3)))
    diag, ones, nus = np.diagonal(K).copy(), np.ones(40), np.array([0.05, 0.5, 0.2, 1.0, 0.1])
    problems = [one_class_svm(diag, nu, ones) if formulation == "one-class SVM" else svdd(diag, 1 / (nu * 40), ones) for nu in nus]
    found = solver.solve_path(K[None], [family(OCSVM if formulation == "one-class SVM" else SVDD, nus * 40)])
    assert found.converged.all()
    assert (found.gap <= TOL).all()
    for q, b, rho, quadratic in zip(problems, found.b[0], found.rho[0], found.quadratic[0], strict=True):
        alone = solve(q, Dense(K))
        assert (b >= q.lower).all()
        assert (b <= q.upper).all()
        np.testing.assert_allclose(K @ b - rho, K @ alone.b - alone.rho, rtol=0, atol=1e-6 * np.abs(b).sum())
        assert quadratic == pytest.approx(b @ K @ b, rel=1e-9)


@every_seed
def test_newton_steps_make_the_gradients_of_free_weights_equal(seed, state):
    """Weights stay in their bounds and keep their sum; samples that repeat others may stay where they are."""
    K, _, b, _, lower, upper, p = state(seed)
    for W in (np.arange(18), np.repeat(np.arange(18), 2)):
        point = b[W] * (18 / W.size)
        moved, gradients, bounds = point.copy(), K[np.ix_(W, W)] @ point + p[W], (lower[W], upper[W])
        assert newton.newton(K[np.ix_(W, W)].copy(), moved, gradients, *bounds, 256)
        F = newton.free_weights(moved, *bounds)
        assert ((moved >= bounds[0]) & (moved <= bounds[1])).all()
        assert moved.sum() == pytest.approx(point.sum(), abs=1e-12)
        np.testing.assert_allclose(gradients, K[np.ix_(W, W)] @ moved + p[W], atol=1e-12)
        assert np.ptp(gradients[F]) < 1e-9


def optimum(K, total, upper):
    """The weights of a one-class SVM with this sum, and their gradients."""
    b = solve(DualProblem(np.zeros(upper.size), np.zeros(upper.size), upper, total), Dense(K), tol=1e-12).b
    return b, K @ b


def test_a_path_keeps_the_sum_and_the_free_weights_exact():
    """50 values of nu with a whole number of samples each, on a line: where no weight is free, none may seem free, and rho is the midpoint.

    The certificate trusts the sum, and would not notice that rounding moved it.
    """
    X = np.random.default_rng(101).normal(size=(100, 1))
    K, nus = np.exp(-((X - X.T) ** 2)), np.linspace(0.01, 0.99, 50)
    found = solver.solve_path(K[None], [family(OCSVM, nus * 100)])
    np.testing.assert_allclose(found.b[0].sum(axis=1), nus * 100, rtol=1e-13)
    for b, rho, nu in zip(found.b[0], found.rho[0], nus, strict=True):
        alone = solver.solve_path(K[None], [family(OCSVM, np.array([nu * 100]))])
        np.testing.assert_allclose(K @ b - rho, K @ alone.b[0, 0] - alone.rho[0, 0], rtol=0, atol=1e-8)


def test_a_path_of_nearly_equal_samples_is_certified():
    """On a line they enter and leave in turn: all 50 values are certified, and their sums are exact."""
    X = np.round(np.random.default_rng(0).normal(size=(120, 1)), 1) + 1e-5 * np.random.default_rng(1).normal(size=(120, 1))
    K = np.exp(-np.abs(X - X.T))
    found = solver.solve_path(K[None], [family(OCSVM, np.linspace(0.01, 0.99, 50) * 120)])
    assert found.converged.all()
    np.testing.assert_allclose(found.b[0].sum(axis=1), np.linspace(0.01, 0.99, 50) * 120, rtol=1e-12)


@every_seed
def test_paths_of_many_values_are_those_of_each_alone(seed):
    """50 values of nu, each followed from the one before."""
    K, nus = RBF(sigma=1.0)(np.random.default_rng(seed).normal(size=(40, 3))), np.linspace(0.02, 0.98, 50)
    found = solver.solve_path(K[None], [family(OCSVM, nus * 40)])
    assert found.converged.all()
    for b, nu in zip(found.b[0], nus, strict=True):
        alone, _ = optimum(K, nu * 40, np.ones(40))
        np.testing.assert_allclose(b @ K, alone @ K, rtol=0, atol=1e-6)  # the solver's tolerance


@every_seed
def test_certificates_are_those_of_the_naive_formulas(seed, state):
    """The multiplier, the gap, the violation and the scales, at an inner point and where all weights are at a bound."""
    K, diag, b, _, lower, upper, p = state(seed)
    for point in (b, np.where(b > 0, upper, lower), lower.copy(), upper.copy()):
        G = K @ point + p
        found = certificate.certify(point, G, p, diag, lower, upper, 1e-6)
        may_shrink, may_grow = G[point > lower], G[point < upper]
        assert found.violation == max(may_shrink.max(initial=-np.inf) - may_grow.min(initial=np.inf), 0.0)
        free = (point > lower) & (point < upper)
        if free.any():
            assert found.rho == pytest.approx(G[free].mean())
        if may_grow.size:
            gaps = [
                np.sum((point - lower) * np.maximum(G - at, 0) + (upper - point) * np.maximum(at - G, 0))
                for at in (found.rho, may_grow.min())
            ]
            assert found.gap * found.scale == pytest.approx(min(gaps), abs=1e-15)
        assert found.quadratic == pytest.approx(point @ K @ point)
        assert found.mass == pytest.approx((point - lower).sum())
        assert found.far == np.inf
        assert found.size_of_sums == pytest.approx(np.abs(point) @ np.sqrt(diag) * np.sqrt(diag[point != 0]).max(initial=0.0))


@every_seed
def test_weights_are_raised_to_their_bounds_one_after_the_other(seed):
    """A feasible start, with at most one weight between its bounds."""
    rng = np.random.default_rng(seed)
    lower, upper = -rng.uniform(0, 1, 9), rng.uniform(0, 1, 9)
    for total in (lower.sum(), 0.0, 0.5 * upper.sum(), upper.sum()):
        b = dense.first_at_bound(lower, upper, total, rng.permutation(9))
        assert b.sum() == pytest.approx(total, abs=1e-12)
        assert (b >= lower).all()
        assert (b <= upper).all()
        assert ((b > lower) & (b < upper)).sum() <= 1 or total in (lower.sum(), upper.sum())


def test_far_samples_do_not_set_the_scale():
    """The scale, and which samples are far, follow from the naive formulas; near samples give the scale that they have alone."""
    rng = np.random.default_rng(0)
    b, lower, p = rng.uniform(0.1, 1.0, 20), np.zeros(20), np.zeros(20)
    Phi = rng.normal(size=(20, 3))
    Phi[-1], b[-1] = 1e6, 1e-9
    G, diag = Phi @ (Phi.T @ b), np.sum(Phi**2, axis=1)
    found = certificate.certify(b, G, p, diag, lower, np.full(20, 1e4), 1e-30)
    assert found.far == pytest.approx(1e4 * np.average(np.sqrt(diag), weights=b) ** 2)
    assert diag[-1] > found.far > diag[:-1].max()
    assert found.quadratic == pytest.approx(b @ G)
    assert found.mass == pytest.approx(b.sum())
    weighted = np.sum(b * np.sqrt(diag))
    assert found.allowed == pytest.approx(certificate.ROUNDING * weighted * np.sqrt(diag[-1]))
    assert found.size_of_sums == pytest.approx(weighted * np.sqrt(diag[:-1].max()))
    near = b[:-1].sum() * (b[:-1] @ diag[:-1]) - b[:-1] @ G[:-1]
    assert found.scale == pytest.approx(0.5 * abs(near))
    held = np.full(20, 1e-13)
    held[0] = 1.0
    newton.snap(held, diag, found.far, lower, np.full(20, 1e4))  # a hair of 1e-12 of the largest weight, which the range exceeds
    np.testing.assert_array_equal(held[1:] == 0.0, diag[1:] <= found.far)
