"""A conformal test martingale: evidence, at any time, that new rows are less normal than those that calibrated.

The t-th new score is ranked among the calibration scores and all new ones before it, ties broken at random. If all of them are
exchangeable, these p-values are independent and uniform, whatever the scores' distribution and however few they are (Vovk, Nouretdinov
and Gammerman, 2003). A bet multiplies its stake by a density at p_t, 1 on average, so its capital is a martingale, and so is the average
over the bets f below and over the rows k at which they begin:

    E_t = 1 / log2(t + 2)  +  sum over k <= t of  w_k mean_f f(p_k) ··· f(p_t),     w_k = 1 / log2(k + 1) - 1 / log2(k + 2).

The first term is the stake of bets that have not begun. Ville's inequality: P(E_t >= 1 / level for any t) <= level. A change after t
rows is found about log(t) later than one at once, since the bets that begin there have lost nothing before it.
"""

from typing import ClassVar

import numpy as np

from .._core.file_rules import Array, Number, Rule

LOW, HIGH = np.array([0.3, 0.6]), np.array([1.5, 2.5])
"""Power bets, e p^(e - 1) and e (1 - p)^(e - 1), all on small p-values: on a few very unusual rows, or on many rather unusual ones.
No bet is on large ones: rows more normal than calibration break no promise, and all rows are, slightly, where folds calibrate."""

TOGETHER = 512  # rows that are ranked at a time, each among those before it
TINY = 1e-15


class ConformalMartingale:
    """``seen`` are all scores so far, ascending, ``rows`` counts the new ones; ``capital`` of each bet and ``evidence`` are logarithms."""

    _file_rules: ClassVar[dict[str, Rule]] = {
        "seen": Array(("n",)),
        "rows": Number(0),
        "capital": Array((LOW.size + HIGH.size,), finite=False),
        "evidence": Number(),
    }

    def __init__(self, calibration: np.ndarray) -> None:
        self.seen = np.sort(_comparable(calibration))
        self.rows, self.evidence = 0, 0.0
        self.capital = np.full(LOW.size + HIGH.size, -np.inf)

    def add(self, scores: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """Take new scores in their order, and return the logarithm of the evidence after each; ``draws`` in [0, 1) break ties."""
        scores = _comparable(scores)
        parts = [slice(start, start + TOGETHER) for start in range(0, len(scores), TOGETHER)]
        return np.concatenate([np.empty(0), *(self._bet(self._ranked(scores[part], draws[part])) for part in parts)])

    def _ranked(self, scores: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """The share of scores so far that are lower, equal ones in a random order; then these are seen, too."""
        below, at_most = (np.searchsorted(self.seen, scores, side) for side in ("left", "right"))
        before = np.tri(len(scores), k=-1, dtype=bool)
        lower = below + (before & (scores < scores[:, None])).sum(axis=1)
        equal = at_most - below + (before & (scores == scores[:, None])).sum(axis=1)
        count = self.seen.size + np.arange(1, len(scores) + 1)
        self.seen = np.sort(np.concatenate([self.seen, scores]), kind="stable")
        return np.clip((lower + draws * (equal + 1)) / count, TINY, 1.0 - TINY)

    def _bet(self, p: np.ndarray) -> np.ndarray:
        strengths = np.concatenate([LOW, HIGH])[:, None]
        on = np.concatenate([np.tile(p, (LOW.size, 1)), np.tile(1.0 - p, (HIGH.size, 1))])
        gained = np.cumsum(np.log(strengths) + (strengths - 1.0) * np.log(on), axis=1)
        row = self.rows + 1.0 + np.arange(p.size)
        stake = np.log(1.0 / np.log2(row + 1.0) - 1.0 / np.log2(row + 2.0))
        staked = stake - np.column_stack([np.zeros(len(gained)), gained[:, :-1]])  # a bet that begins has gained nothing before
        capital = gained + np.logaddexp.accumulate(np.column_stack([self.capital, staked]), axis=1)[:, 1:]
        evidence = np.logaddexp(-np.log(np.log2(row + 2.0)), np.logaddexp.reduce(capital, axis=0) - np.log(len(capital)))
        self.rows, self.capital, self.evidence = self.rows + p.size, capital[:, -1], float(evidence[-1])
        return evidence


def _comparable(scores: np.ndarray) -> np.ndarray:
    """Scores in single precision: equal rows may get scores that differ in the last bits of double precision, and must tie."""
    most = np.finfo(np.float32).max
    return np.clip(scores, -most, most).astype(np.float32)
