"""Factorisations of the references' kernel matrix: one for the map, and a cheaper one for inner products alone.

Symbols as in ``feature_map``: ``K_RR`` (m × m), ``K_ZR = k(Z, R)``, ``mu`` the column means of K_RR, ``J = I - 11'/m``.
"""

from .centring import centred, column_means, distinct_rows, first_of_each
from .checks import check_floor, check_rank, check_references
from .factor import Factor, Factorisation, factorise
from .tridiagonal import eigenpairs, tridiagonal_form
from .whitening import FEW_BELOW, LARGE, Whitening

__all__ = [
    "FEW_BELOW",
    "LARGE",
    "Factor",
    "Factorisation",
    "Whitening",
    "centred",
    "check_floor",
    "check_rank",
    "check_references",
    "column_means",
    "distinct_rows",
    "eigenpairs",
    "factorise",
    "first_of_each",
    "tridiagonal_form",
]
