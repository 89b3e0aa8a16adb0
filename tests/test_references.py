"""Reference strategies: how many vectors, which rows, in which order, from which seed."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import check_random_state

import refkernel as rk
from refkernel._core.rows import TrainingRows
from refkernel.references import Given, Negatives, Normal, Subset, Training, as_strategy, case

N_TARGETS, N_OUTLIERS, D = 21, 8, 3
OUTLIER_ROWS = np.arange(1, 3 * N_OUTLIERS, 3)  # interleaved with the targets


@pytest.fixture
def rows():
    """21 targets with 8 outliers among them."""
    X = np.random.default_rng(0).normal(size=(N_TARGETS + N_OUTLIERS, D))
    return TrainingRows(X, np.setdiff1d(np.arange(len(X)), OUTLIER_ROWS), OUTLIER_ROWS)


@pytest.fixture
def draw(rows):
    """draw(strategy, seed): references drawn from the rows."""
    return lambda strategy, seed=0: strategy.draw(rows, check_random_state(seed))


@pytest.mark.parametrize(
    ("strategy", "size"),
    [
        (Training(), 21),
        (Subset(), 10),  # floor(21 / 2)
        (Subset(0.3), 6),  # floor(6.3)
        (Subset(1.0), 21),
        (Subset(4), 4),
        (Subset(np.int64(4)), 4),
        (Subset("balanced"), 8),
        (Normal(), 21),
        (Normal(0.5), 10),
        (Normal(2.5), 52),
        (Normal(100), 100),
        (Normal(1), 1),
        (Normal("balanced"), 8),
        (Negatives(), 8),
        (Negatives(3), 3),
        (Negatives(0.3), 6),
        (Given(np.ones((5, D))), 5),
        (Training() + Normal(4) + Given(np.ones((2, D))), 27),
    ],
)
def test_size_is_a_floored_fraction_a_count_or_balanced(draw, strategy, size):
    """A float is a fraction of the targets, rounded down; an int a count; "balanced" the smaller of the two kinds."""
    drawn = draw(strategy)
    assert drawn.vectors.shape == (size, D)
    assert drawn.indices.shape == (size,)


@pytest.mark.parametrize("n", [*range(10, 40), 100, 200])
@pytest.mark.parametrize("percent", [10, 29, 30, 50, 70])
def test_floor_of_a_fraction_is_that_of_exact_arithmetic(n, percent):
    """The floor is that of the decimal number the user wrote: 0.29 of 100 is 29, though 0.29 * 100 < 29 in doubles."""
    rows = TrainingRows(np.zeros((n, 1)), np.arange(n), np.arange(0))
    assert rows.count(percent / 100) == n * percent // 100


@pytest.mark.parametrize("number", range(1, 8))
def test_cases_have_the_sizes_of_the_article(draw, number):
    """The seven cases hold n, n, n/2, n/2, n + T, n + T and n + T vectors, generated or not as the article says."""
    n, half, T = N_TARGETS, N_TARGETS // 2, min(N_TARGETS, N_OUTLIERS)
    training, generated = {1: (n, 0), 2: (0, n), 3: (half, 0), 4: (0, half), 5: (n + T, 0), 6: (n, T), 7: (0, n + T)}[number]
    drawn = draw(case(number))
    assert ((drawn.indices >= 0).sum(), (drawn.indices < 0).sum()) == (training, generated)
    assert drawn.vectors.shape == (training + generated, D)


def test_balanced_is_limited_by_the_targets_too():
    """With fewer targets than outliers, T is the number of targets, and the outliers are a random part."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    rows = TrainingRows(X, np.arange(9), np.arange(9, 30))
    drawn = Negatives().draw(rows, check_random_state(0))
    assert drawn.indices.size == 9
    assert (drawn.indices >= 9).all()
    assert len(set(drawn.indices)) == 9


@pytest.mark.parametrize("strategy", [Training(), Subset(), Negatives(4), Training() + Negatives(), Subset() + Normal(3) + Negatives(2)])
@pytest.mark.parametrize("seed", range(3))
def test_indices_tell_which_row_each_reference_is(draw, rows, strategy, seed):
    """X[index] is the reference itself wherever the index is not -1, with targets and outliers mixed in X."""
    drawn = draw(strategy, seed)
    known = drawn.indices >= 0
    assert known.any()
    np.testing.assert_array_equal(rows.X[drawn.indices[known]], drawn.vectors[known])
    assert len(set(drawn.indices[known])) == known.sum()  # without replacement


def test_members_come_from_the_right_kind(draw):
    """Training and Subset take targets only, Negatives outliers only."""
    assert not set(draw(Training()).indices) & set(OUTLIER_ROWS)
    assert not set(draw(Subset()).indices) & set(OUTLIER_ROWS)
    assert set(draw(Negatives(4)).indices) <= set(OUTLIER_ROWS)
    np.testing.assert_array_equal(draw(Training()).indices, np.setdiff1d(np.arange(N_TARGETS + N_OUTLIERS), OUTLIER_ROWS))


@pytest.mark.parametrize("strategy", [Subset(), Negatives(4), Normal(), case(7)])
def test_everything_random_follows_the_seed(draw, strategy):
    """One seed gives one draw; seeds differ."""
    np.testing.assert_array_equal(draw(strategy, 1).vectors, draw(strategy, 1).vectors)
    assert any(not np.array_equal(draw(strategy, 1).vectors, draw(strategy, seed).vectors) for seed in (2, 3))


def test_sum_keeps_the_order(draw, rows):
    """a + b holds the references of a, then those of b; sums of sums too, and arrays and names may be added."""
    R = np.arange(6.0).reshape(2, D)
    drawn = draw(Negatives(3) + R + "training")
    assert (drawn.indices[:3] >= 0).all()
    np.testing.assert_array_equal(drawn.indices[3:5], [-1, -1])
    np.testing.assert_array_equal(drawn.vectors[3:5], R)
    np.testing.assert_array_equal(drawn.indices[5:], rows.targets)


def test_normal_draws_have_the_scale_that_was_asked(draw):
    """Normal(scale=s) has mean 0 and deviation s in every feature."""
    R = draw(Normal(20_000, scale=3.0)).vectors
    np.testing.assert_allclose(R.mean(axis=0), 0.0, atol=0.1)  # 5 standard errors: 5 * 3 / sqrt(20,000)
    np.testing.assert_allclose(R.std(axis=0), 3.0, atol=0.08)


@pytest.mark.parametrize("name", ["training", "subset", "normal", "negatives", *(f"case{i}" for i in range(1, 8))])
def test_names_stand_for_fresh_strategies(draw, name):
    """A name gives the strategy it says, and never an object that is shared with the next user of the name."""
    assert as_strategy(name) is not as_strategy(name)
    if name.startswith("case"):
        np.testing.assert_array_equal(draw(as_strategy(name), 5).vectors, draw(case(int(name[4:])), 5).vectors)
    assert type(as_strategy(name)) is type(clone(as_strategy(name)))


def test_arrays_and_lists_stand_for_themselves(draw):
    """An array, or a list of rows, is used as it is, and its rows count as generated."""
    R = [[1, 2, 3], [4, 5, 6]]
    drawn = draw(as_strategy(R))
    np.testing.assert_array_equal(drawn.vectors, R)
    np.testing.assert_array_equal(drawn.indices, [-1, -1])


def test_fit_tells_the_rows_of_its_references(samples):
    """reference_indices_ of a fitted map points into the X that was passed, outlier rows and generated vectors included."""
    X = samples(30, 3, 0)
    y = np.where(np.arange(30) % 3 == 1, -1, 1)
    for strategy in ("case1", "case3", "case5", "case6"):
        fitted = rk.ReferenceMap(references=strategy, random_state=0).fit(X, y)
        known = fitted.reference_indices_ >= 0
        np.testing.assert_array_equal(X[fitted.reference_indices_[known]], fitted.references_[known])
    assert (y[rk.ReferenceMap(references="case5").fit(X, y).reference_indices_] == -1).sum() == 10


def test_sparse_rows_give_sparse_references(samples):
    """References taken from sparse samples are the same rows, also next to generated ones."""
    X = samples(12, 3, 0)
    rows, sparse = (TrainingRows(A, np.arange(10), np.arange(10, 12)) for A in (X, sp.csr_matrix(X)))
    for number in (1, 3, 5, 6):
        dense, drawn = (case(number).draw(r, check_random_state(0)) for r in (rows, sparse))
        assert sp.issparse(drawn.vectors)
        np.testing.assert_allclose(drawn.vectors.toarray(), dense.vectors)
        np.testing.assert_array_equal(drawn.indices, dense.indices)


@pytest.mark.parametrize("strategy", [Negatives(), Negatives(2), Normal("balanced"), Subset("balanced"), case(5), case(6), case(7)])
def test_strategies_that_need_outliers_say_so(strategy):
    """Without a known outlier the error says that one is needed and how to pass it."""
    rows = TrainingRows(np.zeros((4, 2)), np.arange(4), np.arange(0))
    with pytest.raises(ValueError, match=r"outlier.*pass y to fit with -1"):
        strategy.draw(rows, check_random_state(0))


@pytest.mark.parametrize("size", [None, "half", True, float("nan"), float("inf"), [3]])
def test_sizes_that_mean_nothing_are_refused(draw, size):
    """A size that is neither fraction, count nor "balanced" is named, with what is allowed."""
    with pytest.raises(ValueError, match=r"size=.* must be a fraction .*count.*balanced"):
        draw(Normal(size))


@pytest.mark.parametrize("size", [0, 0.0, 0.01, -1, -0.5])
def test_sizes_that_leave_no_reference_are_refused(draw, size):
    """A size below one vector is named, with the number of targets."""
    with pytest.raises(ValueError, match=rf"size={size} of 21 targets leaves .* at least 1"):
        draw(Subset(size))


def test_more_than_there_are_is_refused(draw):
    """Without replacement there are no more than the pool holds; the error names both numbers."""
    with pytest.raises(ValueError, match=r"Subset\(size=22\) asks for 22 of 21 targets. Lower size"):
        draw(Subset(22))
    with pytest.raises(ValueError, match=r"Negatives\(size=9\) asks for 9 of 8 outliers. Lower size"):
        draw(Negatives(9))


def test_wrong_cases_names_scales_and_widths_are_refused(draw):
    """Unknown cases and names list the known ones; wrong widths name both; scales must be positive."""
    for number in (0, 8, "1"):
        with pytest.raises(ValueError, match="numbered 1 to 7"):
            case(number)
    with pytest.raises(ValueError, match=r"references='case8' is not known.*'case7'.*strategy or an array"):
        as_strategy("case8")
    with pytest.raises(ValueError, match="references have 4 features, the training samples 3"):
        rk.ReferenceMap(references=Given(np.ones((5, 4)))).fit(np.eye(3))
    with pytest.raises(ValueError, match=r"scale=0\.0 must be a positive"):
        draw(Normal(scale=0.0))


class Drawing(rk.references.Strategy):
    """Returns what it is given, instead of references."""

    def __init__(self, result):
        self.result = result

    def draw(self, rows, random_state):
        return self.result


@pytest.mark.parametrize(
    ("references", "error", "words"),
    [
        (Drawing(np.eye(3)), TypeError, r"Drawing\.draw returned ndarray, not References\(vectors, indices\)"),
        (Drawing(None), TypeError, r"Drawing\.draw returned NoneType, not References"),
        (Drawing(rk.references.References(np.eye(3), np.zeros(2, int))), ValueError, r"Drawing\.draw returned 3 references with 2 indices"),
        (Subset(2) + Drawing(np.eye(3)), TypeError, r"Drawing\.draw returned ndarray"),
        (rk.references.Strategy(), NotImplementedError, r"Strategy draws nothing: define draw\(self, rows, random_state\)"),
        (Subset, ValueError, r"references=<class .*Subset'> is neither a name, a strategy object nor an array"),
    ],
)
@pytest.mark.parametrize(
    "use", [rk.ReferenceMap, lambda references: rk.SVDD(rk.ReferenceKernel(references=references)), rk.ReferenceResidual]
)
def test_errors_of_bad_strategies_name_the_mistake(use, references, error, words):
    """A strategy's result is checked wherever it is used, also inside a sum; so is what stands for a strategy."""
    with pytest.raises(error, match=words):
        use(references=references).fit(np.eye(3))


@pytest.mark.parametrize("use", [rk.ReferenceMap, lambda references: rk.SVDD(rk.ReferenceKernel(references=references))])
def test_no_references_are_refused_by_maps(use):
    with pytest.raises(ValueError, match="references=None is neither a name"):
        use(references=None).fit(np.eye(3))


def test_a_strategy_class_in_place_of_an_object_is_named_with_a_way_out():
    with pytest.raises(ValueError, match=r"Pass an object: Normal\(\)\."):
        rk.ReferenceMap(references=rk.references.Normal).fit(np.eye(3))
