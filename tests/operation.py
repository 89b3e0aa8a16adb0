"""Simulations of a detector in operation: false alarms, delays, a changed column, reviews, suspects.

``python tests/operation.py`` runs all of them (20 minutes) and writes docs/measured/operation.md; with "A changed column" after the
number of runs it measures this part, and leaves the others on the page as they are. tests/test_monitor.py takes short forms.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import beta, ks_2samp
from sklearn.pipeline import make_pipeline

import refkernel as rk
from refkernel.detectors.martingale import ConformalMartingale

LEVEL = 0.05
Draw = Callable[[np.random.Generator, int], np.ndarray]

SCORES: dict[str, Draw] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "counts": lambda rng, n: -rng.poisson(1.0, n).astype(float),
    "two values": lambda rng, n: (rng.random(n) < 0.9).astype(float),
    "half are equal": lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, rng.normal(size=n)),
}
"""Distributions of scores, with and without ties."""


def alarms(draw: Draw, n: int, rows: int, runs: int, level: float = LEVEL) -> float:
    """The share of runs with an alarm at any of the rows, where nothing changes."""
    found = 0
    for run in range(runs):
        rng = np.random.default_rng([run, n])
        evidence = ConformalMartingale(draw(rng, n)).add(draw(rng, rows), rng.random(rows))
        found += evidence.max() >= -np.log(level)
    return found / runs


def alarms_of_auto(n: int, columns: int, rows: int, runs: int) -> float:
    """The same for the scores of AutoDetector, whose calibration rows are scored by folds."""
    found = 0
    for run in range(runs):
        rng = np.random.default_rng([run, n, columns])
        detector = rk.AutoDetector().fit(rng.normal(size=(n, columns)))
        scores = detector.score_samples(rng.normal(size=(rows, columns)))
        found += ConformalMartingale(detector.calibration_).add(scores, rng.random(rows)).max() >= -np.log(LEVEL)
    return found / runs


def stream(rng: np.random.Generator, kind: str, size: float, at: int, rows: int) -> np.ndarray:
    """Standard normal scores that fall by ``size`` after ``at`` rows: at once, or over 2,000 rows."""
    scores, after = rng.normal(size=at + rows), np.arange(rows)
    scores[at:] -= size * (1.0 if kind == "shift" else np.minimum(1.0, after / 2000))
    return scores


def delay(method: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray], n: int, kind: str, size: float, at: int, runs: int) -> str:
    """The median number of rows from a change to the alarm, among runs without an earlier alarm, and the share that finds it at all."""
    delays = []
    rows = 2_000 if kind == "shift" else 3_000
    for run in range(runs):
        rng = np.random.default_rng([run, n, at])
        scores = stream(rng, kind, size, at, rows)
        hit = np.flatnonzero(method(rng.normal(size=n), scores, rng.random(scores.size)))
        delays.append(hit[0] + 1 - at if hit.size else np.inf)
    return _delay_in_words(np.array([each for each in delays if each > 0]))


def ours(calibration: np.ndarray, scores: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Alarms of ``Monitor``."""
    return ConformalMartingale(calibration).add(scores, draws) >= -np.log(LEVEL)


def from_the_start(calibration: np.ndarray, scores: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """The same bets on the same p-values, all begun at the first row (Vovk et al., 2003)."""
    ranked, scores = ConformalMartingale(calibration), scores.astype(np.float32)
    parts = [slice(start, start + 500) for start in range(0, scores.size, 500)]
    p = np.concatenate([ranked._ranked(scores[part], draws[part]) for part in parts])
    return _mixture([np.log(e) + (e - 1) * np.log(on) for e, on in _bets(p)], 1.0)


def fixed(calibration: np.ndarray, scores: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """The same bets on ranks among the calibration scores alone, begun at every row, and made safe for every distribution near theirs.

    As in arXiv 2602.13848: given the calibration scores, new scores fall between them independently, with unknown probabilities. A band
    of Berk and Jones holds their sums with probability 1 - level / 2. A bet on small p-values that is divided by its largest expectation
    in the band is a supermartingale given the calibration scores, and alarms at 2 / level keep the level.
    """
    n = calibration.size
    upper, edges = np.append(_band(n, LEVEL / 2), 1.0), np.arange(n + 2) / (n + 1)
    place = np.searchsorted(np.sort(calibration), scores)
    gains = []
    for strength, from_below in [(0.3, True), (0.6, True), (1.5, False), (2.5, False)]:
        bet = np.diff(edges**strength if from_below else -((1 - edges) ** strength)) * (n + 1)
        gains.append(np.log(bet / (bet * np.diff(upper, prepend=0.0)).sum())[place])
    return _mixture(gains, 0.5, restarted=True)


def batches(calibration: np.ndarray, scores: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """A test of Kolmogorov and Smirnov of each 100 rows, the u-th at the level 0.05 / (u (u + 1)), as ``drift`` would find a change."""
    found = np.zeros(scores.size, dtype=bool)
    for u in range(1, scores.size // 100 + 1):
        found[100 * u - 1] = ks_2samp(calibration, scores[100 * (u - 1) : 100 * u]).pvalue <= LEVEL / (u * (u + 1))
    return found


METHODS = {
    "ranks among all so far, bets begun at every row (`Monitor`)": ours,
    "ranks among all so far, bets begun at row 1": from_the_start,
    "ranks among calibration rows with a band, bets begun at every row": fixed,
    "Kolmogorov–Smirnov tests of batches of 100": batches,
}


def _bets(p: np.ndarray) -> list[tuple[float, np.ndarray]]:
    return [(0.3, p), (0.6, p), (1.5, 1 - p), (2.5, 1 - p)]


def _mixture(gains: list[np.ndarray], share: float, restarted: bool = False) -> np.ndarray:
    """Alarms at 1 / (share · level) of the mean capital of bets that begin at the first row, or at every row."""
    row = np.arange(1.0, gains[0].size + 1)
    stake = np.log(1 / np.log2(row + 1) - 1 / np.log2(row + 2)) if restarted else np.append(0.0, np.full(row.size - 1, -np.inf))
    capital = []
    for gain in gains:
        total = np.cumsum(gain)
        capital.append(total + np.logaddexp.accumulate(stake - np.append(0.0, total[:-1])))
    mean = np.logaddexp.reduce(capital, axis=0) - np.log(len(capital))
    if restarted:
        mean = np.logaddexp(mean, -np.log(np.log2(row + 2)))
    return mean >= -np.log(share * LEVEL)


_BANDS: dict[tuple[int, float], np.ndarray] = {}


def _band(n: int, missed: float) -> np.ndarray:
    """Upper bounds for the distribution function at n order statistics, which all hold with probability 1 - missed (by 4,000 draws)."""
    if (n, missed) not in _BANDS:
        spacings, j = np.random.default_rng(0).exponential(size=(4_000, n + 1)), np.arange(1, n + 1)
        at = np.cumsum(spacings, axis=1)[:, :-1] / spacings.sum(axis=1, keepdims=True)
        tail = np.quantile(beta.sf(at, j, n + 1 - j).min(axis=1), missed)
        _BANDS[n, missed] = beta.isf(tail, j, n + 1 - j)
    return _BANDS[n, missed]


PERIOD = 300
DETECTORS = {
    "ConformalDetector (ESVDD, split)": lambda: rk.ConformalDetector(
        make_pipeline(rk.TargetScaler(), rk.ESVDD()), method="split", calibration_size=0.5, random_state=0
    ),
    "AutoDetector": rk.AutoDetector,
}


def moving(rng: np.random.Generator, row: np.ndarray) -> np.ndarray:
    """Rows of three columns whose means rise by 0.8 standard deviations, fast at first, as after a repair."""
    return rng.normal(size=(row.size, 3)) + 0.8 * (1 - np.exp(-row[:, None] / 200.0))


def column_delays(d: int, shift: float, runs: int, at: int = 500, rows: int = 1_500, batch: int = 100) -> tuple[list[str], float]:
    """What a shift of one of d correlated columns does to a TableDetector of 500 rows: delays in words, and the share of batches that warn.

    The rows come in batches. Delays are those of the alarm of ``Monitor`` and of the batch in which ``drifted_`` names the column. Before
    the change, an alarm or a name is an error, and such runs are left out of its median.
    """
    found = []
    for run in range(runs):
        rng = np.random.default_rng([run, d])
        mixed = rng.normal(size=(500 + at + rows, d)) + rng.normal(size=(500 + at + rows, 1))
        mixed[500 + at :, 0] += shift * np.sqrt(2.0)
        frame = pd.DataFrame(mixed, columns=[f"x{j}" for j in range(d)])
        detector = rk.TableDetector().fit(frame[:500])
        monitor = rk.Monitor(detector)
        for first in range(500, len(frame), batch):
            monitor.update(frame[first : first + batch])
        evidence = ConformalMartingale(detector.calibration_).add(*_scores_and_draws(monitor, detector, frame[500:]))
        alarm = np.flatnonzero(evidence >= -np.log(LEVEL))
        found.append([alarm[0] + 1 if alarm.size else np.inf, monitor.drifted_.get("x0", np.inf), len(set(monitor.drifted_) - {"x0"}) > 0])
    delays = np.array(found, dtype=np.float64)
    return [_delay_in_words(delays[delays[:, j] > at, j] - at) for j in (0, 1)], float(delays[:, 2].mean())


def _scores_and_draws(monitor: rk.Monitor, detector: rk.TableDetector, frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """What the monitor bets on, row by row."""
    return detector.score_samples(frame), monitor._draws(0, len(frame))[:, 1]


def _delay_in_words(delays: np.ndarray) -> str:
    """The median, and the share that is finite unless all are."""
    median, share = np.median(delays), np.isfinite(delays).mean()
    return ("never" if np.isinf(median) else f"{median:.0f}") + ("" if share == 1 else f" ({share:.0%})")


def reviewed(detector: str, runs: int, window: int = PERIOD) -> np.ndarray:
    """Shares of new normal rows that are rejected after three periods: unreviewed, and after a review of each (runs × 2)."""
    found = []
    for run in range(runs):
        rng = np.random.default_rng(run)
        fitted = DETECTORS[detector]().fit(rng.normal(size=(600, 3)))
        monitor = rk.Monitor(fitted, window=window)
        for period in range(3):
            X, anomalies = moving(rng, np.arange(PERIOD) + period * PERIOD), rng.random(PERIOD) < 0.02
            X[anomalies] += rng.choice([-6.0, 6.0], size=(anomalies.sum(), 3))
            monitor.review(monitor.update(X).rows[anomalies])
        new = moving(rng, np.full(1_000, 3.5 * PERIOD))
        found.append([np.mean(each.predict(new) == -1) for each in (fitted, monitor.detector_)])
    return np.array(found)


def trimmed(runs: int, n: int = 400, hidden: float = 0.05, k: int = 20) -> np.ndarray:
    """Rejected new normal rows and caught outliers, before and after looking at k rows of which a share was hidden outliers (runs × 4)."""
    found = []
    for run in range(runs):
        rng = np.random.default_rng(run)
        X, is_outlier = rng.normal(size=(n, 4)), np.arange(n) < hidden * n
        X[is_outlier] += rng.normal(0.0, 2.5, size=(is_outlier.sum(), 4))
        new, outliers = rng.normal(size=(1_000, 4)), rng.normal(size=(1_000, 4)) + rng.normal(0.0, 2.5, size=(1_000, 4))
        before = DETECTORS["ConformalDetector (ESVDD, split)"]().fit(X)
        looked = rk.suspects(before, k)
        after = before.with_outliers(looked[is_outlier[looked]])
        found.append([np.mean(each.predict(rows) == -1) for each in (before, after) for rows in (new, outliers)])
    return np.array(found)


CASES = [(kind, size, at) for kind, size in (("shift", 0.5), ("shift", 1.0), ("drift", 1.0)) for at in (0, 1_000)]

HEAD = """# A detector in operation, by simulation

`python tests/operation.py` writes this page.
"""
PARTS = {
    "False alarms": """\
Share of {runs:,} runs with an alarm, ever, within 5,000 rows, where nothing changes; at most 5 % are promised. The rows of
AutoDetector, which folds calibrate, have 5 columns ({few:,} runs, 3,000 rows).""",
    "Delays": """\
Rows from a change to the alarm: the median of {some:,} runs and, where not all of them find the change within 2,000 rows (drift: 3,000),
the share that does. Scores are standard normal and fall by 0.5 or 1; the drift falls by 1 over 2,000 rows. The change begins at the
first row, or after 1,000 normal ones. The level is 5 %.""",
    "A changed column": """\
One column of a table moves by a multiple of its standard deviation, after 500 normal rows: rows until the alarm of `Monitor`, and until
`drifted_` names the column (rows come in batches of 100). The columns are normal, with correlations of 0.5; a TableDetector learnt from
500 rows. Medians of {few:,} runs and, where not all of them find it within 1,500 rows, the share that does. In the last column, the share
of runs in which `drifted_` named another column.""",
    "Reviews": f"""\
Rejected new normal rows where 5 % are promised, after three periods of {PERIOD} rows in which the means of three columns rise by 0.8
standard deviations, fast at first. There are 2 % of anomalies, which the reviews name; `window={PERIOD}`.""",
    "Suspects": """\
Of 400 training rows, 5 % are hidden outliers. Half of the rows calibrate a ConformalDetector (ESVDD, split) at a rate of 5 %. What it
rejects and catches before and after `with_outliers` of those among the 20 rows that `suspects` lists: means of {runs:,} runs.""",
}
"""What each part of the page measures."""


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows])


def false_alarms(runs: int, few: int, some: int) -> str:
    """How often nothing gives an alarm."""
    false = [[name, *(f"{alarms(draw, n, 5_000, runs):.1%}" for n in (50, 500))] for name, draw in SCORES.items()]
    false.append(["AutoDetector", *(f"{alarms_of_auto(n, 5, 3_000, few):.1%}" for n in (50, 500))])
    return table(["scores", "50 calibration rows", "500"], false)


def delays_of_methods(runs: int, few: int, some: int) -> str:
    """How soon a change of the scores is found."""
    found = []
    for n in (50, 200, 1_000):
        head = [f"{n:,} calibration rows", *(f"{kind} of {size:g} after {at:,}" for kind, size, at in CASES)]
        found.append(table(head, [[name, *(delay(method, n, *case, some) for case in CASES)] for name, method in METHODS.items()]))
    return "\n\n".join(found)


def changed_column(runs: int, few: int, some: int) -> str:
    """How soon a change of one column is found."""
    rows = []
    for d in (3, 10):
        for shift in (1.0, 2.0, 4.0):
            (alarm, named), wrong = column_delays(d, shift, few)
            rows.append([f"1 of {d} by {shift:g}", alarm, named, f"{wrong:.0%}"])
    return table(["column", "rows until the alarm", "rows until it is named", "another is named"], rows)


def reviews(runs: int, few: int, some: int) -> str:
    """What reviews do for the rate."""
    rejected = {name: reviewed(name, count).mean(axis=0) for name, count in zip(DETECTORS, (runs, few), strict=True)}
    head = [f"({runs:,} and {few:,} runs)", "unreviewed", "reviewed"]
    return table(head, [[name, *(f"{share:.1%}" for share in shares)] for name, shares in rejected.items()])


def suspects(runs: int, few: int, some: int) -> str:
    """What looking at suspicious rows does."""
    before, caught, after, caught_after = (f"{share:.1%}" for share in trimmed(runs).mean(axis=0))
    return table(["", "normal rows rejected", "outliers caught"], [["before", before, caught], ["after", after, caught_after]])


MEASURE = dict(zip(PARTS, (false_alarms, delays_of_methods, changed_column, reviews, suspects), strict=True))


def main(runs: int, *only: str) -> None:
    """Simulate everything, or some parts, and write the page."""
    page = Path(__file__).parent.parent / "docs" / "measured" / "operation.md"
    few, some = max(runs // 10, 2), max(runs // 5, 2)
    there = dict(part.split("\n", 1) for part in page.read_text(encoding="utf-8").split("\n## ")[1:])
    parts = [HEAD]
    for name, text in PARTS.items():
        if only and name not in only:
            parts.append(f"## {name}\n{there[name].rstrip()}\n")
            continue
        parts.append(f"## {name}\n\n{text.format(runs=runs, few=few, some=some)}\n\n{MEASURE[name](runs, few, some)}\n")
        print(parts[-1], file=sys.stderr, flush=True)
    page.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000, *sys.argv[2:])
