"""Reference strategies beyond the article's cases: how the vectors lie, how often rows are drawn, and the follow-up's nine sets."""

from decimal import ROUND_HALF_UP, Decimal
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from scipy.stats import chisquare, kstest
from sklearn.base import clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.utils import check_random_state

import refkernel as rk
from refkernel._core.rows import TrainingRows
from refkernel.references import (
    FarthestFirst,
    KMeans,
    LeverageScores,
    Negatives,
    Normal,
    NormalLike,
    Pushed,
    Shell,
    Subset,
    Training,
    Uniform,
    as_strategy,
    strategies,
)
from refkernel.references.base import NAMES
from refkernel.references.strategies import leverage_scores

N_TARGETS, N_OUTLIERS, D = 21, 8, 3
OUTLIER_ROWS = np.arange(1, 3 * N_OUTLIERS, 3)  # interleaved with the targets
STRATEGIES = [KMeans(), LeverageScores(), FarthestFirst(), Uniform(), Shell(), NormalLike(), NormalLike(of="negatives"), Pushed()]
CHOOSE = [LeverageScores(), FarthestFirst()]
GENERATE = [s for s in STRATEGIES if type(s) not in {type(c) for c in CHOOSE}]


@pytest.fixture
def mixed():
    """21 targets with 8 outliers among them."""
    X = np.random.default_rng(0).normal(size=(N_TARGETS + N_OUTLIERS, D)) * [1.0, 2.0, 0.5] + [5.0, 0.0, -1.0]
    return TrainingRows(X, np.setdiff1d(np.arange(len(X)), OUTLIER_ROWS), OUTLIER_ROWS)


@pytest.fixture
def draw(mixed):
    """draw(strategy, seed): references drawn from the 29 rows."""
    return lambda strategy, seed=0: strategy.draw(mixed, check_random_state(seed))


def targets_only(X):
    return TrainingRows(X, np.arange(X.shape[0]), np.arange(0))


def drawn_from(X, strategy, seed=0):
    return strategy.draw(targets_only(X), check_random_state(seed))


# --- laws of every strategy ---


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
@pytest.mark.parametrize(("size", "expected"), [(0.3, 6), (4, 4), (1.0, 21), ("balanced", 8), ("outliers", 8), ("rounded_half", 11)])
def test_sizes_mean_the_same_everywhere(draw, strategy, size, expected):
    """Fractions, counts and names give the same number of vectors whatever draws them."""
    drawn = draw(clone(strategy).set_params(size=size))
    assert drawn.vectors.shape == (expected, D)
    assert drawn.indices.shape == (expected,)
    assert np.isfinite(drawn.vectors).all()


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_everything_random_follows_the_seed(draw, strategy):
    """One seed gives one draw; seeds differ."""
    np.testing.assert_array_equal(draw(strategy, 1).vectors, draw(strategy, 1).vectors)
    assert any(not np.array_equal(draw(strategy, 1).vectors, draw(strategy, seed).vectors) for seed in (2, 3))


@pytest.mark.parametrize("strategy", CHOOSE, ids=repr)
@pytest.mark.parametrize("seed", range(5))
def test_chosen_rows_are_distinct_targets_that_the_indices_point_at(draw, mixed, strategy, seed):
    """X[index] is the reference itself, no row comes twice, and none is an outlier."""
    drawn = draw(strategy, seed)
    np.testing.assert_array_equal(mixed.X[drawn.indices], drawn.vectors)
    assert len(set(drawn.indices)) == drawn.indices.size
    assert set(drawn.indices) <= set(mixed.targets)


@pytest.mark.parametrize("strategy", GENERATE, ids=repr)
def test_new_vectors_have_no_index(draw, strategy):
    """Centroids and random draws are no training rows: their index is -1."""
    assert (draw(strategy).indices == -1).all()


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if "negatives" not in repr(s)], ids=repr)
def test_outliers_do_not_move_what_describes_the_targets(mixed, strategy):
    """The outliers' values have no part in references that are made from the targets."""
    X = mixed.X.copy()
    X[mixed.outliers] += 100.0
    moved = strategy.draw(TrainingRows(X, mixed.targets, mixed.outliers), check_random_state(0))
    np.testing.assert_array_equal(moved.vectors, strategy.draw(mixed, check_random_state(0)).vectors)


@pytest.mark.parametrize("strategy", CHOOSE, ids=repr)
def test_single_precision_chooses_the_same_rows(mixed, strategy):
    """Distances and scores are computed in double precision, and the references keep the type of X."""
    single = mixed.X.astype(np.float32)
    a, b = (strategy.draw(TrainingRows(X, mixed.targets, mixed.outliers), check_random_state(0)) for X in (single, single.astype(float)))
    np.testing.assert_array_equal(a.indices, b.indices)
    assert a.vectors.dtype == np.float32


@pytest.mark.parametrize("strategy", [KMeans(22), LeverageScores(22), FarthestFirst(22)], ids=repr)
def test_more_than_there_are_is_refused(draw, strategy):
    """No more centroids or chosen rows than targets; the error names both numbers."""
    with pytest.raises(ValueError, match=r"\(size=22\) asks for 22 of 21 targets. Lower size"):
        draw(strategy)


# --- farthest first ---


def greedy_by_hand(X, first, m):
    """The greedy order by a naive loop over all pairs."""
    chosen = [first]
    for _ in range(m - 1):
        gaps = [min(np.linalg.norm(x - X[j]) for j in chosen) for x in X]
        chosen.append(int(np.argmax(gaps)))
    return chosen


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_each_next_reference_is_the_farthest_from_those_before(seed, offset):
    """The order is that of a naive greedy loop, also for samples far from 0, where inner products lose digits."""
    X = np.random.default_rng(seed).normal(size=(30, 4)) + offset
    order = drawn_from(X, FarthestFirst(12), seed).indices
    assert order.tolist() == greedy_by_hand(X, order[0], 12)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [2, 3, 4])
def test_farthest_first_covers_within_twice_the_best_radius(seed, k):
    """Gonzalez: the largest distance to the nearest of k greedy centres is at most twice that of the best k of all subsets."""
    X = np.random.default_rng(seed).normal(size=(10, 2))
    distances = cdist(X, X)
    best = min(distances[:, list(centres)].min(axis=1).max() for centres in combinations(range(10), k))
    greedy = distances[:, drawn_from(X, FarthestFirst(k), seed).indices].min(axis=1).max()
    assert best <= greedy <= 2.0 * best * (1.0 + 1e-12)  # rounding of two distances


def test_fewer_references_are_the_first_of_more():
    """A greedy set of 5 begins the greedy set of 15 from the same seed, and 15 lie closer to the samples."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    few, many = (drawn_from(X, FarthestFirst(m), 7).indices for m in (5, 15))
    np.testing.assert_array_equal(many[:5], few)
    assert cdist(X, X[many]).min(axis=1).max() < cdist(X, X[few]).min(axis=1).max()


def test_equal_rows_are_still_taken_once_each():
    """Where all samples are equal, or only two kinds exist, no row comes twice."""
    for X in (np.full((9, 2), 0.1), np.repeat([[0.1, 0.2], [3.0, 4.0]], 5, axis=0)):
        assert len(set(drawn_from(X, FarthestFirst(1.0)).indices)) == len(X)


# --- k-means ---


def inertia(X, R):
    return (cdist(X, R).min(axis=1) ** 2).sum()


@pytest.mark.parametrize("seed", range(5))
def test_centroids_are_closer_to_the_samples_than_random_ones_of_them(seed):
    """The sum of squared distances to the nearest reference is below that of each of 20 random subsets of the same size."""
    X = np.random.default_rng(seed).normal(size=(80, 3))
    clustered = inertia(X, drawn_from(X, KMeans(10), seed).vectors)
    assert clustered < min(inertia(X, drawn_from(X, Subset(10), other).vectors) for other in range(20))


@pytest.mark.parametrize("seed", range(5))
def test_every_centroid_is_the_mean_of_its_cluster(seed):
    """Each reference is the mean of the samples that are nearest to it."""
    X = np.random.default_rng(seed).normal(size=(60, 3))
    R = drawn_from(X, KMeans(0.2), seed).vectors
    nearest = cdist(X, R).argmin(axis=1)
    means = np.array([X[nearest == j].mean(axis=0) for j in range(len(R))])
    # scikit-learn stops when the squared moves of all centroids sum to less than 1e-4 of a feature's variance, here 1
    np.testing.assert_allclose(R, means, atol=1e-2)


def test_as_many_centroids_as_samples_are_the_samples():
    """With one cluster a sample, the centroids are the targets in another order."""
    X = np.random.default_rng(0).normal(size=(15, 2))
    R = drawn_from(X, KMeans(1.0)).vectors
    np.testing.assert_allclose(X[np.lexsort(X.T)], R[np.lexsort(R.T)], atol=1e-12)  # rounding of a mean of one


# --- leverage scores ---


@pytest.mark.parametrize("ridge", [1e-6, 1e-3, 1.0])
def test_leverage_scores_are_those_of_the_spectrum(ridge):
    """l_i = Σ_j U_ij² lam_j / (lam_j + n ridge), the diagonal of K (K + n ridge I)^-1, by an eigendecomposition."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    K = rk.RBF(1.0).fit(X)(X)
    lam, U = np.linalg.eigh(K)
    expected = U**2 @ (lam / (lam + 40 * ridge))
    # 1 - n ridge A^-1 loses the digits that 1 has more than l_i: l_i >= 1e-2 here
    np.testing.assert_allclose(leverage_scores(K, ridge), expected, rtol=1e-9)


def scores_by_hand(X, ridge):
    """Ridge leverage scores with the kernel object RBF(1.0) and a plain inverse."""
    K, n = rk.RBF(1.0).fit(X)(X), len(X)
    return np.diag(K @ np.linalg.inv(K + n * ridge * np.eye(n)))


@pytest.fixture
def uneven():
    """A dense cluster of 9 and 3 samples far away."""
    rng = np.random.default_rng(1)
    return np.vstack([0.3 * rng.normal(size=(9, 2)), [[4.0, 0.0], [0.0, 5.0], [-4.0, -4.0]]])


def test_one_reference_is_drawn_by_its_leverage_score(uneven):
    """The frequencies of 1500 single draws fit l / sum(l) by chi-square, and do not fit equal ones."""
    random_state, strategy, ridge = check_random_state(0), LeverageScores(1, ridge=1e-2), 1e-2
    drawn = [strategy.draw(targets_only(uneven), random_state).indices[0] for _ in range(1500)]
    observed = np.bincount(drawn, minlength=12)
    scores = scores_by_hand(uneven, ridge)
    assert chisquare(observed, 1500 * scores / scores.sum()).pvalue > 1e-3  # 1 seed in 1000 would fail; this one is fixed
    assert chisquare(observed).pvalue < 1e-12


def test_pairs_are_drawn_one_after_the_other(uneven):
    """Of two draws, i is one with probability p_i + Σ_j p_j p_i / (1 - p_j): the second is drawn from what is left."""
    random_state, strategy, trials = check_random_state(1), LeverageScores(2, ridge=1e-2), 1500
    drawn = np.array([strategy.draw(targets_only(uneven), random_state).indices for _ in range(trials)])
    assert (drawn[:, 0] < drawn[:, 1]).all()  # two rows, in their order
    p = scores_by_hand(uneven, 1e-2)
    p = p / p.sum()
    either = [p[i] + sum(p[j] * p[i] / (1.0 - p[j]) for j in range(12) if j != i) for i in range(12)]
    share = np.bincount(drawn.ravel(), minlength=12) / trials
    np.testing.assert_allclose(share, either, atol=4.0 * np.sqrt(0.25 / trials))  # 4 standard errors at most


def test_a_lone_sample_is_drawn_more_often_than_a_member_of_a_crowd(uneven):
    """Each far sample comes more often than every sample of the cluster."""
    random_state = check_random_state(2)
    counts = np.zeros(12)
    for _ in range(500):
        counts[LeverageScores(4).draw(targets_only(uneven), random_state).indices] += 1
    assert counts[9:].min() > counts[:9].max()


def test_the_default_kernel_is_rbf_on_the_targets(mixed):
    """The name "rbf" draws what the kernel object RBF(1.0) draws; another width draws others; the object given stays as it was."""
    given = rk.RBF(scale=0.01)
    by_name, by_object, narrow = (
        [LeverageScores(8, kernel=k).draw(mixed, check_random_state(seed)).indices for seed in range(10)]
        for k in ("rbf", rk.RBF(1.0), given)
    )
    np.testing.assert_array_equal(by_name, by_object)
    assert not np.array_equal(by_name, narrow)
    assert not hasattr(given, "sigma_")


def test_targets_without_leverage_come_last():
    """Under the linear kernel a sample at 0 has score 0: it is drawn only when all others are."""
    X = np.vstack([np.zeros(2), np.random.default_rng(0).normal(size=(6, 2))])
    for seed in range(20):
        assert 0 not in drawn_from(X, LeverageScores(6, kernel=rk.kernels.Linear()), seed).indices
    assert 0 in drawn_from(X, LeverageScores(7, kernel=rk.kernels.Linear())).indices


def test_of_very_many_targets_a_random_part_is_scored(monkeypatch):
    """Above SCORED_TARGETS the references are among so many random targets, never more; at it, all are scored."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    monkeypatch.setattr(strategies, "SCORED_TARGETS", 10)
    pools = [set(drawn_from(X, LeverageScores(10), seed).indices) for seed in range(3)]
    assert all(len(pool) == 10 for pool in pools)
    assert len(set.union(*pools)) > 10
    with pytest.raises(ValueError, match=r"asks for 11 of 10 targets \(scored: a random part of 30\). Lower size"):
        drawn_from(X, LeverageScores(11))
    monkeypatch.setattr(strategies, "SCORED_TARGETS", 30)
    assert drawn_from(X, LeverageScores(1.0)).indices.size == 30


def test_leverage_scores_refuse_what_they_cannot_use():
    """A ridge that is not positive, an unknown kernel, and a kernel that stays indefinite are named, with the way out."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=r"ridge=0 must be a positive"):
        drawn_from(X, LeverageScores(ridge=0))
    with pytest.raises(ValueError, match=r"kernel='poly' must be \"rbf\" or a kernel object"):
        drawn_from(X, LeverageScores(kernel="poly"))
    with pytest.raises(ValueError, match=r"ridge=1e-09 leaves .* indefinite.* Raise ridge"):
        drawn_from(X, LeverageScores(kernel=rk.kernels.Sigmoid(), ridge=1e-9))


# --- draws: box, shell, normal ---


@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_uniform_draws_fill_the_scaled_box(draw, mixed, scale):
    """Every feature is uniform between centre ± scale · half the targets' range, and nothing lies outside."""
    X = mixed.X[mixed.targets]
    centre, half = (X.min(axis=0) + X.max(axis=0)) / 2, scale * np.ptp(X, axis=0) / 2
    u = (draw(Uniform(5000, scale=scale)).vectors - centre) / half
    assert np.abs(u).max() <= 1.0 + 1e-12  # rounding of centre and range
    assert all(kstest(feature, "uniform", args=(-1, 2)).pvalue > 1e-3 for feature in u.T)  # fixed seed


@pytest.mark.parametrize("radius", [1.0, 3.0])
def test_shell_lies_at_a_multiple_of_the_typical_distance(draw, mixed, radius):
    """Every draw is radius times as far from the mean as the targets are in the root mean square, in standard deviations."""
    X = mixed.X[mixed.targets]
    z = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    r = (draw(Shell(200, radius=radius)).vectors - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    np.testing.assert_allclose(np.linalg.norm(r, axis=1), radius * np.sqrt((z**2).sum(axis=1).mean()), rtol=1e-12)


def test_directions_of_the_shell_are_uniform(draw, mixed):
    """On a sphere in 3 dimensions each coordinate is uniform in [-1, 1] (Archimedes), and coordinates are uncorrelated."""
    X = mixed.X[mixed.targets]
    r = (draw(Shell(5000)).vectors - X.mean(axis=0)) / X.std(axis=0)
    u = r / np.linalg.norm(r, axis=1, keepdims=True)
    assert all(kstest(feature, "uniform", args=(-1, 2)).pvalue > 1e-3 for feature in u.T)  # fixed seed
    np.testing.assert_allclose(u.T @ u / 5000, np.eye(3) / 3, atol=0.02)  # 5 standard errors: 5 * 0.3 / sqrt(5000)


def test_constant_features_stay_constant_and_do_not_count():
    """A feature that does not vary is the same in all draws, and the others lie as they would without it."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    wide = np.column_stack([X, np.full(20, 0.1)])
    r = drawn_from(wide, Shell(50, radius=2.0)).vectors
    distances = np.linalg.norm((r[:, :2] - X.mean(axis=0)) / X.std(axis=0), axis=1)
    np.testing.assert_allclose(distances, 2.0 * np.sqrt(2), rtol=1e-12)
    for strategy in (Shell(), Uniform(), NormalLike()):
        np.testing.assert_allclose(drawn_from(wide, strategy).vectors[:, 2], 0.1, rtol=1e-14)  # a mean of 20 equal numbers
        np.testing.assert_allclose(drawn_from(np.ones((1, 3)), strategy).vectors, 1.0)


@pytest.mark.parametrize("of", ["targets", "negatives"])
def test_normal_draws_are_like_those_they_are_of(draw, mixed, of):
    """Each feature is normal with the mean and the standard deviation (n - 1) of the targets, or of the negatives."""
    X = mixed.X[mixed.targets if of == "targets" else mixed.outliers]
    R = draw(NormalLike(20_000, of=of)).vectors
    z = (R - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    np.testing.assert_allclose(z.mean(axis=0), 0.0, atol=0.035)  # 5 standard errors: 5 / sqrt(20,000)
    np.testing.assert_allclose(z.std(axis=0), 1.0, atol=0.025)  # 5 / sqrt(40,000); with n, 8 negatives would give 0.935
    np.testing.assert_allclose(np.corrcoef(z.T), np.eye(3), atol=0.035)  # independent features
    assert all(kstest(feature, "norm").pvalue > 1e-3 for feature in z.T)  # fixed seed


def test_draws_like_one_negative_have_the_spread_of_the_targets(quiet):
    """One negative has no deviation of its own: draws lie around it as the targets lie around their mean, without a warning."""
    X = np.random.default_rng(0).normal(size=(6, 3))
    one = TrainingRows(X, np.arange(5), np.array([5]))
    drawn = quiet(NormalLike(7, of="negatives").draw, one, check_random_state(0))
    z = check_random_state(0).standard_normal((7, 3))
    np.testing.assert_allclose(drawn.vectors, X[5] + X[:5].std(axis=0, ddof=1) * z, rtol=1e-13)


@pytest.mark.parametrize("by", [0.0, 0.5, 2.0])
def test_pushed_draws_are_normal_ones_moved_away_from_zero(draw, by):
    """No value is nearer to 0 than ``by``, signs are those of the same normal draws, and so is what is left of them."""
    z, pushed = draw(Normal(500), 4).vectors, draw(Pushed(500, by=by), 4).vectors
    assert np.abs(pushed).min() >= by
    np.testing.assert_allclose(pushed - z, np.where(z < 0, -by, by), atol=1e-14)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (Uniform(scale=0.0), r"scale=0\.0 must be a positive"),
        (Shell(radius=-1.0), r"radius=-1\.0 must be a positive"),
        (NormalLike(of="outliers"), r"of='outliers' must be one of \['targets', 'negatives'\]"),
        (Pushed(by=-0.5), r"by=-0\.5 must be a number >= 0"),
        (Pushed(by=None), r"by=None must be a number >= 0"),
    ],
)
def test_parameters_that_mean_nothing_are_refused(draw, strategy, message):
    """The error names the parameter, its value and what is allowed."""
    with pytest.raises(ValueError, match=message):
        draw(strategy)


# --- the follow-up's nine sets ---


FAR, NEAR = 100.0, 10.0


def kinds(drawn, rows_):
    """How many references are targets, negatives, draws around 0, and draws around the negatives (at 100)."""
    new = drawn.vectors[drawn.indices < 0]
    at_zero = (np.abs(new) < NEAR).all(axis=1)
    at_negatives = (np.abs(new - FAR) < NEAR).all(axis=1)
    assert (at_zero | at_negatives).all()
    return np.isin(drawn.indices, rows_.targets).sum(), np.isin(drawn.indices, rows_.outliers).sum(), at_zero.sum(), at_negatives.sum()


@pytest.mark.parametrize(("n", "q"), [(20, 6), (21, 6), (7, 12), (9, 1), (1, 2)])
@pytest.mark.parametrize("number", range(1, 10))
def test_options_hold_what_the_follow_up_lists(n, q, number):
    """With n targets and q negatives at 100, each option has the listed numbers of targets, negatives and draws of either kind."""
    X = np.vstack([np.random.default_rng(0).normal(size=(n, 3)), FAR + np.random.default_rng(1).normal(size=(q, 3))])
    fitted_on = TrainingRows(X, np.arange(n), np.arange(n, n + q))
    half = int((Decimal(n) / 2).quantize(Decimal(1), ROUND_HALF_UP))
    expected = {
        1: (n, 0, 0, 0),
        2: (n, q, 0, 0),
        3: (0, q, 0, 0),
        4: (0, 0, n, q),
        5: (0, 0, 0, n + q),
        6: (0, 0, n, q),
        7: (0, q, 0, n),
        8: (0, q, 0, 2 * n),
        9: (0, q, 0, half),
    }[number]
    drawn = as_strategy(f"negatives{number}").draw(fitted_on, check_random_state(0))
    assert kinds(drawn, fitted_on) == expected
    known = drawn.indices >= 0
    np.testing.assert_array_equal(X[drawn.indices[known]], drawn.vectors[known])
    assert len(set(drawn.indices[known])) == known.sum()


def test_only_option_six_pushes_its_normal_draws(mixed):
    """Option 6 is option 4 with z + 0.5 sign(z) instead of z in its first n vectors."""
    four, six = (as_strategy(f"negatives{k}").draw(mixed, check_random_state(0)).vectors[:N_TARGETS] for k in (4, 6))
    np.testing.assert_allclose(six, four + 0.5 * np.sign(four), atol=1e-14)


def test_options_beyond_nine_are_refused():
    """With the list of names."""
    for name in ("negatives0", "negatives10"):
        with pytest.raises(ValueError, match="'negatives9'"):
            as_strategy(name)


@pytest.mark.parametrize(
    "strategy",
    [
        Negatives("outliers"),
        Normal("outliers"),
        NormalLike(of="negatives"),
        NormalLike(5, of="negatives"),
        *(as_strategy(f"negatives{k}") for k in range(2, 10)),
    ],
    ids=repr,
)
def test_strategies_that_need_outliers_say_so(strategy):
    """Without a known outlier the error says that one is needed and how to pass it."""
    with pytest.raises(ValueError, match=r"outlier.*pass y to fit with -1"):
        drawn_from(np.random.default_rng(0).normal(size=(4, 2)), strategy)


# --- inside the estimators ---


@pytest.fixture
def labelled(samples):
    """40 targets and 10 outliers, mixed, and their labels."""
    y = np.where(np.arange(50) % 5 == 2, -1, 1)
    X = samples(50, 3, 0)
    X[y == -1] *= 2.5
    return X, y


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_works_in_map_kernel_and_classifiers(labelled, name):
    """A name fits maps, kernels and SVDD; the references are those that its strategy draws from the seed."""
    X, y = labelled
    fitted = rk.ReferenceMap(references=name, random_state=3).fit(X, y)
    by_hand = as_strategy(name).draw(TrainingRows(X, np.flatnonzero(y == 1), np.flatnonzero(y == -1)), check_random_state(3))
    np.testing.assert_array_equal(fitted.references_, by_hand.vectors)
    np.testing.assert_array_equal(fitted.reference_indices_, by_hand.indices)
    kernel = rk.ReferenceKernel(references=name, random_state=3)
    np.testing.assert_allclose(kernel.fit(X, y)(X), fitted.kernel_matrix(X))
    model = rk.SVDD(kernel, nu=0.1).fit(X, y)
    assert 0.5 < (model.predict(X[y == 1]) == 1).mean() <= 1.0


@pytest.mark.parametrize("strategy", [*STRATEGIES, *(as_strategy(f"negatives{k}") for k in range(1, 10))], ids=repr)
def test_copies_have_the_same_parameters_and_draws(draw, strategy):
    """clone, and a new object of the same parameters, draw the same; get_params and set_params reach every one."""
    copy = clone(strategy)
    assert repr(copy) == repr(strategy)
    np.testing.assert_array_equal(draw(copy, 6).vectors, draw(strategy, 6).vectors)
    again = type(strategy)(**strategy.get_params(deep=False))
    np.testing.assert_array_equal(draw(again, 6).vectors, draw(strategy, 6).vectors)


def test_parameters_of_references_can_be_set_through_the_estimator():
    """kernel__references__… reaches a strategy, also one given by name, without touching the name's own."""
    model = rk.SVDD(rk.ReferenceKernel(references="shell")).set_params(kernel__references__radius=5.0)
    assert model.kernel.references.radius == 5.0
    assert as_strategy("shell").radius == 3.0
    nested = rk.ReferenceMap(references=LeverageScores(kernel=rk.RBF(1.0))).set_params(references__kernel__scale=0.5)
    assert nested.references.kernel.scale == 0.5


def test_grid_search_over_strategies_agrees_with_scikit_learn(labelled):
    """OneClassGridSearch gives GridSearchCV's scores for all new strategies, by object and by name."""
    X, y = labelled
    model = rk.SVDD(rk.ReferenceKernel(random_state=0), nu=0.2)
    strategies = [KMeans(0.3), LeverageScores(0.3), FarthestFirst(0.3), "uniform", "shell", "normal_like", "negatives2", "negatives7"]
    grid = {"kernel__references": strategies, "kernel__kernel__scale": [0.3, 3.0], "nu": [0.1, 0.3]}
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    ours = rk.OneClassGridSearch(model, grid, cv=folds, random_state=0).fit(X, y)
    theirs = GridSearchCV(model, grid, cv=folds, scoring=make_scorer(rk.metrics.gmean_score)).fit(X, y)
    # both predict from equal decision values up to the solver's tolerance, far from changing a label here
    np.testing.assert_allclose(ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-12)
    assert np.ptp(ours.cv_results_["mean_test_score"]) > 0
    assert ours.best_params_ == theirs.best_params_


# --- sparse samples ---


@pytest.mark.parametrize("strategy", [KMeans(5), LeverageScores(5), FarthestFirst(5)], ids=repr)
def test_sparse_samples_give_the_references_of_dense_ones(strategy):
    """Where sparse X is taken, the references are those of the same numbers in a dense array, and a map fits on them."""
    X = np.random.default_rng(0).normal(size=(20, 6)) * (np.random.default_rng(1).random((20, 6)) < 0.5)
    dense, sparse = drawn_from(X, strategy), drawn_from(sp.csr_matrix(X), strategy)
    np.testing.assert_array_equal(dense.indices, sparse.indices)
    R = sparse.vectors.toarray() if sp.issparse(sparse.vectors) else sparse.vectors
    np.testing.assert_allclose(R, dense.vectors, atol=1e-12)  # rounding of means
    on_sparse, on_dense = (rk.ReferenceMap(references=strategy, random_state=0).fit_transform(A) for A in (sp.csr_matrix(X), X))
    np.testing.assert_allclose(np.abs(on_sparse), np.abs(on_dense), atol=1e-9)  # eigenvectors have no sign


@pytest.mark.parametrize("strategy", [Uniform(), Shell(), NormalLike(), Training() + Shell()], ids=repr)
def test_strategies_that_measure_features_refuse_sparse_samples(strategy):
    """The error says which strategy, that X is sparse, and what to do."""
    with pytest.raises(ValueError, match=r"(Uniform|Shell|NormalLike) measures .* does not take sparse X. Pass X.toarray\(\), or .*KMeans"):
        drawn_from(sp.csr_matrix(np.eye(5)), strategy)


@pytest.mark.parametrize("name", ["kmeans", "leverage", "farthest"])
@pytest.mark.parametrize("unit", [2.0**-1000, 2.0**-520, 2.0**520, 2.0**1000])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_references_do_not_depend_on_the_unit(name, unit, kind):
    """Values whose squares overflow or vanish: a power of two changes no digit of what is drawn.

    Sparse rows are compared with sparse ones: KMeans sums up dense and sparse samples in another order, and may end elsewhere.
    """
    X = np.random.default_rng(0).normal(size=(40, 3))
    rows = TrainingRows(kind(X), np.arange(40), np.arange(0))
    moved = TrainingRows(kind(X * unit), np.arange(40), np.arange(0))
    expected, found = (rk.references.as_strategy(name).draw(r, np.random.RandomState(0)).vectors for r in (rows, moved))
    expected, found = (vectors.toarray() if sp.issparse(vectors) else vectors for vectors in (expected, found))
    np.testing.assert_allclose(found / unit, expected, rtol=1e-12)
