"""Strategies by number and by name: the article's cases, and the follow-up's options with known outliers."""

from __future__ import annotations

from sklearn.base import clone

from .automatic import Auto
from .base import NAMES, Strategy
from .draws import KMeans, Normal, NormalLike, Pushed, Shell, Uniform
from .rows import FarthestFirst, LeverageScores, Negatives, Subset, Training

__all__ = ["CASES", "NAMES", "NEGATIVES_OPTIONS", "case", "negatives_option"]

CASES = {
    1: Training(),
    2: Normal(),
    3: Subset(0.5),
    4: Normal(0.5),
    5: Training() + Negatives(),
    6: Training() + Normal("balanced"),
    7: Normal() + Normal("balanced"),
}
"""The article's seven ways to choose references."""

NEGATIVES_OPTIONS = {
    1: Training(),
    2: Training() + Negatives("outliers"),
    3: Negatives("outliers"),
    4: Normal() + NormalLike("outliers", of="negatives"),
    5: NormalLike(of="negatives") + NormalLike("outliers", of="negatives"),
    6: Pushed(by=0.5) + NormalLike("outliers", of="negatives"),
    7: Negatives("outliers") + NormalLike(of="negatives"),
    8: Negatives("outliers") + NormalLike(2.0, of="negatives"),
    9: Negatives("outliers") + NormalLike("rounded_half", of="negatives"),
}
"""The follow-up's nine ways to choose references with all known outliers."""

NAMES.update(
    {
        "auto": Auto(),
        "training": Training(),
        "subset": Subset(),
        "normal": Normal(),
        "negatives": Negatives(),
        "kmeans": KMeans(),
        "leverage": LeverageScores(),
        "farthest": FarthestFirst(),
        "uniform": Uniform(),
        "shell": Shell(),
        "normal_like": NormalLike(),
        **{f"case{number}": strategy for number, strategy in CASES.items()},
        **{f"negatives{number}": strategy for number, strategy in NEGATIVES_OPTIONS.items()},
    }
)


def case(number: int) -> Strategy:
    """Return the article's case 1 … 7.

    Parameters
    ----------
    number : int
        1 to 7, as in the article.

    Returns
    -------
    Strategy
        The references of that case.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.references.case(5)
    Sum(first=Training(), second=Negatives())
    """
    if number not in CASES:
        raise ValueError(f"case({number!r}): the article's cases are numbered 1 to 7.")
    return clone(CASES[number])


def negatives_option(number: int) -> Strategy:
    """Return the reference set 1 … 9 of the follow-up with known outliers (Raitoharju 2025); it recommends 7.

    Parameters
    ----------
    number : int
        1 to 9, as in the follow-up.

    Returns
    -------
    Strategy
        The references of that option.

    Examples
    --------
    >>> import refkernel as rk
    >>> rk.references.negatives_option(3)
    Negatives(size='outliers')
    """
    if number not in NEGATIVES_OPTIONS:
        raise ValueError(f"negatives_option({number!r}): the options are numbered 1 to 9.")
    return clone(NEGATIVES_OPTIONS[number])
