"""Reasons in words: the features that count most against a row, their values, and what is normal."""

from __future__ import annotations

import numpy as np
import pytest

from refkernel.detectors.explain.normal import Normal, written
from refkernel.detectors.explain.reasons import row_reasons, worst_features

MASS = Normal(2700.0, 6300.0, typical=4050.0)
ISLAND = Normal(levels=("Biscoe", "Dream", "Torgersen"))


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_worst_features_come_first_and_none_that_counts_for_the_row(count):
    values = np.array([[-1.0, 0.5, -3.0], [0.0, 0.2, 0.1], [-2.0, -1.0, -3.0]])
    for row, found in zip(values, worst_features(values, count), strict=True):
        expected = [j for j in np.argsort(row, kind="stable")[:count] if row[j] < 0]
        assert found[found >= 0].tolist() == expected
        assert found.size == min(count, 3)


def test_reasons_name_the_value_and_what_is_normal():
    values = np.array([[-4.0, -1.0], [-0.5, -2.0], [0.1, -2.0]])
    cells = [np.array([3.75, 4000.0, np.nan]), np.array(["Dream", "Rome", None], dtype=object)]
    found = row_reasons(["body_mass_g", "island"], values, cells, [MASS, ISLAND], 2)
    assert [[str(reason) for reason in mine] for mine in found] == [
        ["body_mass_g = 3.75 (normal: 2,700 … 6,300)", "island = Dream (within Biscoe, Dream, Torgersen)"],
        ["island = Rome (normal: Biscoe, Dream, Torgersen)", "body_mass_g = 4,000 (within 2,700 … 6,300)"],
        ["island = missing (normal: Biscoe, Dream, Torgersen)"],
    ]


WIND = Normal(0.0, 1048.0, typical=8.0, middle=(0.0, 26.0))


@pytest.mark.parametrize(
    ("cell", "text", "never"),
    [
        (25.0, "wind = 25 (within 0 … 26)", False),
        (60.0, "wind = 60 (normal: 0 … 26, extremes 0 … 1,048)", False),
        (2000.0, "wind = 2,000 (normal: 0 … 26, extremes 0 … 1,048)", True),
        (np.nan, "wind = missing (normal: 0 … 26, extremes 0 … 1,048)", False),
    ],
)
def test_normal_is_what_most_of_training_had_and_extremes_are_said_apart(cell, text, never):
    ((reason,),) = row_reasons(["wind"], np.array([[-1.0]]), [np.array([cell])], [WIND], 3)
    assert str(reason) == text
    assert reason.outside is never


def test_a_reason_that_counts_less_than_a_tenth_of_the_first_is_not_shown():
    values = np.array([[-10.0, -1.0, -0.99], [-0.5, -10.0, 0.1], [-0.1, -0.02, -0.009]])
    cells = [np.zeros(3)] * 3
    found = row_reasons(["a", "b", "c"], values, cells, [Normal(0.0, 1.0)] * 3, 3)
    assert [[reason.column for reason in mine] for mine in found] == [["a", "b"], ["b"], ["a", "b"]]


def test_a_feature_of_unknown_range_is_named_with_its_value():
    (found,) = row_reasons(
        ["a", "b"], np.array([[-1.0, -2.0]]), [np.array([0.25]), np.array(["red"], dtype=object)], [Normal(), Normal()], 3
    )
    assert [str(reason) for reason in found] == ["b = red", "a = 0.25"]


def test_levels_that_training_did_not_have_count_as_outside_and_missing_cells_do_not():
    assert ISLAND.outside(np.array(["Dream", "Rome", None, np.nan], dtype=object)).tolist() == [False, True, False, False]
    assert MASS.outside(np.array([2699.0, 2700.0, 6301.0, np.nan])).tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (6300.0, "6,300"),
        (3.75, "3.75"),
        (83.1234, "83.12"),
        (0.0, "0"),
        (-0.5, "-0.5"),
        (1e-7, "1e-07"),
        (2.5e12, "2.5e+12"),
        (123456.0, "123,456"),
        (0.012345, "0.01235"),
    ],
)
def test_numbers_are_written_with_few_digits(value, text):
    assert written(value) == text


def test_dates_are_written_as_dates():
    normal = Normal(0.0, 86_400.0 * 364, is_date=True)
    assert str(normal) == "1970-01-01 … 1970-12-31"
    assert normal.written(3_600.0) == "1970-01-01 01:00"


def test_many_levels_are_counted():
    assert str(Normal(levels=tuple("abcdef"))) == "a, b, c and 3 more"
