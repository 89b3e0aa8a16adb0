"""Made-up outliers: what every source promises, and what each one is."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

import refkernel as rk
from refkernel.detectors.pseudo_outliers import (
    Box,
    Given,
    NeighbourNoise,
    PermutedColumns,
    PushedOutward,
    SwappedColumns,
    as_pseudo_outliers,
)
from refkernel.detectors.pseudo_outliers.sources import NAMES

SOURCES = [PermutedColumns(), SwappedColumns(), Box(), PushedOutward(), NeighbourNoise()]
pytestmark = pytest.mark.filterwarnings("ignore:All training rows are equal", "ignore:.*fewer than 2 columns")
every_source = pytest.mark.parametrize("source", SOURCES, ids=repr)


def mixed(n=60, seed=0):
    """A table with every kind of column."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "length": rng.normal(size=n),
            "single": rng.normal(size=n).astype(np.float32),
            "count": rng.integers(0, 9, size=n),
            "byte": rng.integers(0, 255, size=n).astype(np.uint8),
            "nullable": pd.array(rng.integers(0, 5, size=n), dtype="Int64"),
            "city": rng.choice(["Oslo", "Rome"], size=n).astype(object),
            "grade": pd.Categorical(rng.choice(["a", "b"], size=n), categories=["a", "b", "never seen"]),
            "text": pd.array(rng.choice(["x", "y", "z"], size=n), dtype="string"),
            "flag": rng.random(n) < 0.3,
        },
        index=rng.permutation(n) + 100,
    )


@every_source
@pytest.mark.parametrize("n", [1, 7, 130])
def test_n_rows_of_finite_numbers_are_made(source, n, samples):
    """However many are asked for, of fewer or more training rows."""
    made = source.draw(samples(50, 3, 0), n, random_state=0)
    assert made.shape == (n, 3)
    assert made.dtype == np.float64
    assert np.isfinite(made).all()


@every_source
def test_the_same_seed_makes_the_same_rows_and_another_seed_others(source, samples):
    """Randomness enters by random_state alone."""
    X = samples(50, 3, 0)
    np.testing.assert_array_equal(source.draw(X, 20, random_state=3), source.draw(X, 20, random_state=3))
    assert not np.array_equal(source.draw(X, 20, random_state=3), source.draw(X, 20, random_state=4))


@every_source
def test_training_rows_are_left_as_they_are(source, samples):
    """Nothing is written into X."""
    X = samples(30, 4, 1)
    before = X.copy()
    source.draw(X, 40, random_state=0)
    np.testing.assert_array_equal(X, before)


@every_source
@pytest.mark.parametrize("seed", range(3))
def test_made_up_rows_lie_farther_from_the_data_than_new_rows_of_the_data(source, seed):
    """On rows with structure, the nearest training row is farther from what was made up than from a new normal row."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(400, 1))
    rows = np.hstack([hidden, hidden**2, -hidden]) + 0.05 * rng.normal(size=(400, 3))
    X, new = rows[:200], rows[200:]
    near = NearestNeighbors(n_neighbors=1).fit(X)
    distances = np.concatenate([near.kneighbors(Z)[0].ravel() for Z in (new, source.draw(X, 200, random_state=seed))])
    assert roc_auc_score(np.repeat([0, 1], 200), distances) > 0.7


@every_source
def test_a_mixed_table_keeps_its_columns_and_its_categories(source):
    """A DataFrame comes back with the same columns and dtypes; every category was seen in training."""
    X = mixed()
    made = source.draw(X, 80, random_state=0)
    assert list(made.columns) == list(X.columns)
    assert (made.dtypes == X.dtypes).all()
    assert made.shape == (80, X.shape[1])
    assert not made.isna().any().any()
    for name in ("city", "grade", "text", "flag"):
        assert set(made[name]) <= set(X[name])


@every_source
def test_units_of_columns_do_not_matter(source, samples):
    """Scaling and moving columns scales and moves the draws: powers of two, so that rounding is the same."""
    X, unit = samples(40, 3, 0), np.array([1.0, 2.0**20, 2.0**-20])
    made, scaled = source.draw(X, 30, random_state=0), source.draw(X * unit, 30, random_state=0)
    np.testing.assert_allclose(scaled / unit, made, rtol=1e-9, atol=1e-12)


@every_source
@pytest.mark.parametrize(
    "X",
    [
        np.zeros((1, 2)),
        np.ones((20, 3)),
        np.repeat([[0.0, 1.0], [5.0, 1.0]], 20, axis=0),
        np.arange(12.0)[:, None],
        np.random.default_rng(0).normal(size=(20, 1000)),
        np.array([[-1.7e308, 1.0], [1.7e308, 2.0], [1.0, 3.0]]),
        np.array([[1e-310, 1.0], [2e-310, 2.0], [3e-310, 3.0]]),
        np.array([[True, False], [False, False]]),
    ],
    ids=["one row", "equal rows", "duplicates", "one column", "1,000 columns", "huge", "tiny", "booleans"],
)
def test_odd_tables_give_finite_rows_or_a_message(source, X):
    """Nothing overflows, and columns that are constant stay so."""
    if X.dtype == bool and isinstance(source, PushedOutward | NeighbourNoise):
        with pytest.raises(ValueError, match="categories only"):
            source.draw(X, 9, random_state=0)
        return
    made = source.draw(X, 9, random_state=0)
    assert made.shape == (9, X.shape[1])
    assert np.isfinite(made).all()
    constant = (X[0] == X).all(axis=0)
    np.testing.assert_array_equal(made[:, constant], np.repeat(X[:1, constant], 9, axis=0))


@every_source
def test_equal_rows_are_warned_of(source):
    """A warning says when draws equal training rows: such rows are not outliers."""
    with pytest.warns(UserWarning, match="training rows"):
        source.draw(np.ones((5, 2)), 3, random_state=0)


@every_source
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[0.0, 1.0], [np.nan, 2.0]]), "NaN"),
        (np.array([[0.0, 1.0], [np.inf, 2.0]]), "infinity"),
        (pd.DataFrame({"a": [1.0, np.nan]}), "'a' of X holds 1 NaN or infinite values, the first in row 1"),
        (pd.DataFrame({"a": pd.array([1, None], dtype="Int64")}), "'a' of X holds 1 NaN"),
        (pd.DataFrame({"a": ["x", None]}), "'a' of X holds 1 missing values"),
        (pd.DataFrame({"a": pd.to_datetime(["2020-01-01"])}), "neither numbers nor categories"),
        (np.array([["x", 1.0], [None, 2.0]], dtype=object), "Column 0 of X holds 1 missing"),
        (np.zeros((0, 2)), "0 sample"),
        (pd.DataFrame({"a": []}), "at least one row"),
        (np.zeros(3), "1D array"),
    ],
)
def test_what_cannot_be_used_is_named(source, X, message):
    """The error says which column, how many values, and where."""
    with pytest.raises(ValueError, match=message):
        source.draw(X, 3, random_state=0)


def test_sparse_rows_are_refused(samples):
    """The message says what to pass instead."""
    import scipy.sparse as sp

    with pytest.raises(ValueError, match="toarray"):
        Box().draw(sp.csr_array(samples(5, 2, 0)), 3)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "3"])
def test_n_must_be_a_count(n, samples):
    """No row, half a row or True rows cannot be drawn."""
    for source in (Box(), Box() + PermutedColumns(), Given(samples(5, 2, 0))):
        with pytest.raises(ValueError, match=r"n=.* must be an int >= 1"):
            source.draw(samples(5, 2, 0), n)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (Box(margin=-1), "margin=-1"),
        (SwappedColumns(columns=0), "columns=0"),
        (SwappedColumns(columns=1.5), "columns=1.5"),
        (PushedOutward(by=0), "by=0"),
        (PushedOutward(edge=2), "edge=2"),
        (NeighbourNoise(factor=-1), "factor=-1"),
        (NeighbourNoise(neighbours=0), "neighbours=0"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(source, message, samples):
    """The error names the value."""
    with pytest.raises(ValueError, match=message):
        source.draw(samples(9, 2, 0), 3)


def test_permuted_columns_have_the_marginals_of_the_data(samples):
    """Every column holds the same values, as often, in other rows."""
    X = samples(50, 4, 0)
    made = PermutedColumns().draw(X, 100, random_state=0)
    np.testing.assert_array_equal(np.sort(made, axis=0), np.sort(np.vstack([X, X]), axis=0))
    assert np.mean([(row == X).all(axis=1).any() for row in made]) < 0.05


def test_permuted_columns_are_independent():
    """A column that determines another no longer does."""
    x = np.random.default_rng(0).normal(size=2000)
    made = PermutedColumns().draw(np.column_stack([x, x]), 2000, random_state=0)
    assert abs(np.corrcoef(made.T)[0, 1]) < 4 / np.sqrt(2000)


@pytest.mark.parametrize(("columns", "d", "changed"), [(0.1, 2, 2), (0.1, 10, 2), (0.1, 50, 5), (1, 10, 1), (4, 10, 4), (99, 3, 3)])
def test_swapped_columns_changes_that_many_columns(columns, d, changed):
    """With all values different, exactly so many cells of every row come from elsewhere, from their own columns."""
    X = np.arange(30.0)[:, None] * np.ones(d) + 100 * np.arange(d)
    made = SwappedColumns(columns).draw(X, 60, random_state=0)
    rows = made - 100 * np.arange(d)
    assert ((rows >= 0) & (rows < 30)).all()
    assert all(any(np.count_nonzero(row != own) == changed for own in X) for row in made)


def test_box_is_uniform_in_the_widened_range(samples):
    """Its moments are those of the uniform distribution on a range a fifth wider."""
    X = samples(100, 3, 0)
    made = Box().draw(X, 20_000, random_state=0)
    low, high = X.min(axis=0), X.max(axis=0)
    width = high - low
    assert (made >= low - 0.1 * width).all()
    assert (made <= high + 0.1 * width).all()
    np.testing.assert_allclose(made.mean(axis=0), (low + high) / 2, atol=4 * np.max(1.2 * width / np.sqrt(12 * 20_000)))
    np.testing.assert_allclose(made.std(axis=0), 1.2 * width / np.sqrt(12), rtol=0.03)


def test_box_draws_categories_uniformly():
    """A rare level is as likely as a frequent one."""
    X = pd.DataFrame({"a": ["x"] * 99 + ["y"]})
    share = (Box().draw(X, 4000, random_state=0)["a"] == "y").mean()
    assert abs(share - 0.5) < 4 * 0.5 / np.sqrt(4000)


def test_integers_stay_within_their_type():
    """An unsigned byte does not wrap around at the margin of the box."""
    X = np.array([[0], [255]], dtype=np.uint8)
    made = Box(margin=0.5).draw(X, 500, random_state=0)
    assert made.dtype == np.uint8
    assert (made == 0).mean() > 0.15
    assert (made == 255).mean() > 0.15


def test_large_integers_are_exchanged_exactly():
    """Permuting passes no value through a float."""
    X = np.array([[2**62 + 1, 1], [2**62 + 3, 2]])
    assert set(PermutedColumns().draw(X, 4, random_state=0)[:, 0].tolist()) == {2**62 + 1, 2**62 + 3}


def test_pushed_rows_lie_farther_out_than_the_edge(samples):
    """Each is a row of the edge, moved out by a quarter to three quarters of its distance."""
    X = samples(200, 3, 0)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    far = np.sort(np.linalg.norm(Z, axis=1))[-50:]
    made = np.linalg.norm((PushedOutward(by=0.5, edge=0.25).draw(X, 300, random_state=0) - X.mean(axis=0)) / X.std(axis=0), axis=1)
    assert made.min() > 1.249 * far.min()
    assert made.max() < 1.751 * far.max()


def test_noise_has_the_scale_of_the_neighbours():
    """Where rows lie ten times as densely, they are moved a tenth as far."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 2)), 100 + 10 * rng.normal(size=(200, 2))])
    made = NeighbourNoise().draw(X, 400, random_state=0)
    near = made.sum(axis=1) < 60
    moved = NearestNeighbors(n_neighbors=1).fit(X).kneighbors(made)[0].ravel()
    assert 5 < np.median(moved[~near]) / np.median(moved[near]) < 20


def test_noise_moves_duplicates_too():
    """Rows whose neighbours equal them take the distance of the others."""
    X = np.repeat([[0.0, 0.0], [1.0, 3.0]], 30, axis=0)
    made = NeighbourNoise().draw(X, 60, random_state=0)
    assert not any((row == X).all(axis=1).any() for row in made)


@pytest.mark.parametrize("n", [1, 2, 3, 30, 31])
def test_a_sum_draws_in_equal_parts(n):
    """Three sources give a third each, however they were added; what does not divide goes to the first."""
    a, b, c = (Given(np.full((1, 2), value)) for value in (1.0, 2.0, 3.0))
    for source in (a + b + c, a + (b + c)):
        counts = np.bincount(source.draw(np.zeros((5, 2)), n, random_state=0)[:, 0].astype(int), minlength=4)[1:]
        assert counts.tolist() == [n // 3 + (n % 3 > k) for k in range(3)]


def test_a_sum_of_mixed_tables_is_a_table():
    """Parts are put below each other with their dtypes."""
    X = mixed()
    made = (PermutedColumns() + Box() + "swapped").draw(X, 40, random_state=0)
    assert made.shape == (40, X.shape[1])
    assert (made.dtypes == X.dtypes).all()
    assert made.index.tolist() == list(range(40))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_name_stands_for_a_source_of_its_own(name, samples):
    """What a name gives can be changed without changing the next."""
    first, second = as_pseudo_outliers(name), as_pseudo_outliers(name)
    assert first is not second
    assert first.draw(samples(20, 3, 0), 4, random_state=0).shape == (4, 3)


def test_names_objects_and_arrays_are_understood(samples):
    """An object with a draw is taken as it is, an array as rows, and other words are refused."""
    box = Box()
    assert as_pseudo_outliers(box) is box
    assert as_pseudo_outliers(np.ones((3, 2))).draw(samples(9, 2, 0), 5).tolist() == [[1.0, 1.0]] * 5
    with pytest.raises(ValueError, match="'boxes' is not known"):
        as_pseudo_outliers("boxes")
    with pytest.raises(ValueError, match="rows of 2 columns"):
        Given(np.ones((3, 4))).draw(samples(9, 2, 0), 5)


def test_a_source_of_your_own_adds_to_ours(samples):
    """One draw is all that is asked of it."""

    class Zeros:
        def draw(self, X, n, random_state=None):
            return np.zeros((n, X.shape[1]))

    made = (Box() + Zeros()).draw(samples(9, 2, 0), 6, random_state=0)
    assert (made[3:] == 0).all()
    assert (made[:3] != 0).all()


def test_parameters_of_sums_are_nested():
    """Sources are cloned and set as scikit-learn's estimators are."""
    source = clone(PermutedColumns() + Box()).set_params(second__margin=0.5)
    assert source.second.margin == 0.5
    assert rk.pseudo_outliers.Box().margin == 0.1
