"""Drift is called where rows differ from training, and rarely where they do not."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency, fisher_exact, ks_2samp

import refkernel as rk
from refkernel.detectors.calibration.promise import holm
from refkernel.tabular import ColumnProfile
from refkernel.tabular.columns import ALL_KNOTS, CATEGORY, FEWEST_KNOTS, MOST_KNOTS, counted_levels
from refkernel.tabular.drift import LEVEL, CategoriesCount, DriftMonitor, NumbersCount, same_levels


def of_categories(name, cells):
    levels, counts = counted_levels(cells)
    return ColumnProfile(name, CATEGORY, rows=len(cells), missing=len(cells) - sum(counts), levels=levels, counts=counts)


def drift_of(old, new, scores=None, new_scores=None, blocks=1):
    encoder = rk.TableEncoder(standardise=False).fit(old)
    monitor = DriftMonitor(encoder.columns, scores)
    for part in np.array_split(np.arange(len(new)), blocks):
        monitor.add(encoder.read(new.iloc[part]).cells, None if new_scores is None else new_scores[part])
    return monitor.drift()


def mixed(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"normal": rng.normal(shift, 1, n), "skewed": rng.exponential(size=n), "whole": rng.poisson(3, n).astype(float)})
    frame["level"] = pd.Series(rng.choice(["a", "b", "c", "d"], n, p=[0.5, 0.3, 0.15, 0.05]), dtype=object)
    frame.loc[rng.random(n) < 0.1, "skewed"] = np.nan
    return frame


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["continuous", "whole", "constant"])
def test_with_all_values_as_knots_the_statistic_is_that_of_scipy(kind, seed):
    rng = np.random.default_rng(seed)
    draw = {"continuous": lambda n: rng.normal(size=n), "whole": lambda n: rng.poisson(4, n) * 1.0, "constant": lambda n: np.full(n, 5.0)}
    old, new = draw[kind](80), draw[kind](57) + 0.3 * seed
    count = NumbersCount(ColumnProfile.of_numbers("x", old))
    count.add(new, slice(None))
    assert count.test()[0] == pytest.approx(ks_2samp(old, new).statistic, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_with_fewer_knots_the_statistic_is_at_most_scipys_and_nearly_as_large(seed):
    rng = np.random.default_rng(seed)
    old, new = rng.normal(size=20_000), rng.normal(0.2, 1.1, size=3_000)
    column = ColumnProfile.of_numbers("x", old)
    assert column.knots.size <= MOST_KNOTS
    count = NumbersCount(column)
    count.add(new, slice(None))
    exact = ks_2samp(old, new).statistic
    assert exact - 2 / MOST_KNOTS <= count.test()[0] <= exact


def test_rows_counted_in_blocks_give_what_they_give_at_once():
    old, new = mixed(300, 0), mixed(200, 1, shift=0.5)
    once, parts = drift_of(old, new), drift_of(old, new, blocks=7)
    assert [column.as_dict() for column in once.columns] == [column.as_dict() for column in parts.columns]


def test_of_many_rows_evenly_spread_ones_are_tested_and_all_are_counted(monkeypatch):
    monkeypatch.setattr("refkernel.tabular.drift.MOST_TESTED", 100)
    monkeypatch.setattr("refkernel.tabular.drift.FEWEST_TESTED", 100)
    old, new = pd.DataFrame({"x": np.arange(50.0)}), pd.DataFrame({"x": np.arange(1_000.0)})
    for blocks in (1, 7, 40):
        (found,) = drift_of(old, new, blocks=blocks).columns
        assert found.count.tested.tolist() == np.arange(0.0, 1_000.0, 16.0).tolist()
        assert found.count.outside == (0, 950)
        assert found.count.rows == 1_000


def test_without_drift_all_tests_together_call_it_at_most_as_often_as_the_level_allows():
    called = [bool(drift_of(mixed(150, seed), mixed(90, 1_000 + seed)).drifted) for seed in range(200)]
    assert np.mean(called) <= LEVEL + 2.5 * np.sqrt(LEVEL * (1 - LEVEL) / 200)


@pytest.mark.parametrize("column", ["normal", "skewed", "whole", "level"])
def test_a_column_that_changes_is_found_and_no_other(column):
    old, new = mixed(2_000, 0), mixed(1_000, 1)
    new[column] = "d" if column == "level" else new[column] + 1.0
    assert [found.name for found in drift_of(old, new).drifted] == [column]


def test_a_share_of_missing_cells_that_changes_is_found():
    old, new = mixed(500, 0), mixed(500, 1)
    new.loc[:150, "skewed"] = np.nan
    (found,) = drift_of(old, new).drifted
    assert found.name == "skewed"
    assert found.as_dict()["missing"] == new["skewed"].isna().sum()
    assert found.as_dict()["missing_share_training"] == pytest.approx(old["skewed"].isna().mean())


def test_a_constant_that_moves_to_either_side_is_found():
    old = pd.DataFrame({"set_point": np.full(50, 100.0)})
    for value, outside in ((130.0, (0, 20)), (70.0, (20, 0))):
        (found,) = drift_of(old, pd.DataFrame({"set_point": np.full(20, value)})).drifted
        assert found.difference == 1.0
        assert found.count.outside == outside


def test_a_few_rows_of_a_level_that_training_never_saw_are_found():
    old = pd.DataFrame({"level": pd.Series(["a"] * 500 + ["b"] * 500, dtype=object)})
    new = pd.DataFrame({"level": pd.Series(["a", "b", "zebra", "zebra", "yak"], dtype=object)})
    (found,) = drift_of(old, new).drifted
    assert found.as_dict()["unseen"] == {"zebra": 2, "yak": 1}
    assert found.as_dict()["unseen_rows"] == 3


def test_levels_are_tested_as_scipy_does_where_all_are_frequent_and_by_fisher_where_there_are_two():
    old, new = np.array([400, 300, 200]), np.array([110, 120, 80])
    assert same_levels(old, new) == pytest.approx(chi2_contingency([old, new], correction=False).pvalue)
    assert same_levels(np.array([9, 3]), np.array([1, 4])) == pytest.approx(fisher_exact([[9, 3], [1, 4]]).pvalue)


def test_rare_levels_count_as_one_and_do_not_call_drift_by_themselves():
    rng = np.random.default_rng(0)
    shares = np.append(np.full(300, 0.4 / 300), 0.6)
    p = [same_levels(rng.multinomial(400, shares), rng.multinomial(100, shares)) for _ in range(300)]
    assert np.mean(np.array(p) < 0.05) < 0.09


def counted(old, new, blocks=1):
    monitor = DriftMonitor([ColumnProfile.of_numbers("a", old[0]), of_categories("b", old[1])])
    for part in np.array_split(np.arange(len(new[0])), blocks):
        monitor.add([column[part] for column in new])
    return monitor


def test_a_whole_column_in_another_unit_is_recognised():
    rng = np.random.default_rng(0)
    islands = np.array(["Dream", "Biscoe"], dtype=object)
    monitor = counted((rng.uniform(2_700.0, 6_300.0, 300), islands), (rng.uniform(2.7, 6.3, 133), np.full(133, "Dream", dtype=object)), 3)
    [line] = monitor.outside()
    assert line.startswith("a: all 133 rows outside 2,7")
    assert line.endswith(" times smaller than in training. Another unit?")
    assert 800 < float(line.split("about ")[1].split(" ")[0].replace(",", "")) < 1250


def test_some_rows_outside_are_counted_and_few_are_not_worth_a_line():
    new = np.full(20, 0.5), np.full(20, "x", dtype=object)
    new[0][:7], new[1][0] = 2.0, "y"
    monitor = counted((np.array([0.0, 1.0]), np.array(["x", "z"], dtype=object)), new)
    assert [count.unlike for count in monitor.counts] == [7, 1]
    assert monitor.outside() == ["a: 7 of 20 rows outside 0 … 1"]


def test_scores_that_fall_are_found_and_equal_ones_are_not():
    rng = np.random.default_rng(0)
    frame, scores = mixed(400, 0), rng.normal(size=400)
    assert drift_of(frame, mixed(300, 1), scores, rng.normal(-1, 1, 300)).scores_found
    assert not drift_of(frame, mixed(300, 1), scores, rng.normal(0, 1, 300)).scores_found


def test_holm_gives_the_values_counted_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.4, 0.4]) == pytest.approx([0.8, 0.8])
    assert holm([]) == []


def test_a_profile_is_plain_json_and_holds_at_most_a_thousand_numbers():
    columns = rk.TableEncoder().fit(mixed(50_000, 0)).columns
    for column in columns:
        assert json.loads(json.dumps(column.as_dict(), allow_nan=False)) == column.as_dict()
    assert max(3 * column.knots.size for column in columns) <= 1_000


def test_profiles_of_the_encoder_are_those_of_single_columns():
    """Order statistics, counts, missing cells and levels; the encoder learns all numbers at once."""
    frame = mixed(3_000, 0)
    for found in rk.TableEncoder().fit(frame).columns:
        cells = frame[found.name].to_numpy()
        expected = of_categories(found.name, cells) if found.levels else ColumnProfile.of_numbers(found.name, cells)
        assert found.as_dict() == expected.as_dict()
        assert str(found) == str(expected)


def test_tables_of_very_many_columns_keep_less_of_each():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 10_000))).add_prefix("c")
    columns = rk.TableEncoder().fit(frame).columns
    assert {column.knots.size for column in columns} == {FEWEST_KNOTS}
    assert FEWEST_KNOTS < MOST_KNOTS < ALL_KNOTS


def test_empty_and_missing_columns_are_no_drift_and_no_error():
    old = pd.DataFrame({"x": [1.0, 2.0, np.nan], "level": pd.Series(["a", np.nan, "a"], dtype=object)})
    drift = drift_of(old, pd.DataFrame({"x": [np.nan], "level": pd.Series([np.nan], dtype=object)}))
    assert drift.drifted == []
    json.dumps([column.as_dict() for column in drift.columns], allow_nan=False)
    assert isinstance(drift.columns[1].count, CategoriesCount)
