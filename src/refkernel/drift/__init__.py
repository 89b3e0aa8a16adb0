"""Drift: is new data still what training data were? Tests for each column and for the scores, corrected for their number.

Numbers are tested by Kolmogorov and Smirnov's test against order statistics of the training values, categories by a chi-square test,
shares of missing values by Fisher's exact test. What a model file keeps of a training column is at most 768 numbers.
"""

from .columns import Categories, Column, Numbers, column_from_dict, describe
from .monitor import LEVEL, ColumnDrift, Drift, DriftMonitor
from .statistics import holm

__all__ = ["LEVEL", "Categories", "Column", "ColumnDrift", "Drift", "DriftMonitor", "Numbers", "column_from_dict", "describe", "holm"]
