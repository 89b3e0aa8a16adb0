"""How long first calls take that find nothing in numba's cache: `python benchmarks/bench_first_call.py [--rows 100] [--functions]`.

Each scenario is a fresh process with an empty cache. For each step: seconds, seconds of compiling, and how many functions were compiled.
With ``--functions`` the functions are listed too, by numba's own compile events: seconds in all, and without what they call.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCENARIOS = {
    "SVDD": ["import", "fit", "predict", "search"],
    "defaults": ["import", "default SVDD", "default OneClassSVM"],
    "AutoDetector": ["import", "auto"],
    "refkernel fit": ["command"],
    "refkernel fit --model svdd": ["command of svdd"],
}
AIMS = {"SVDD: fit": 5.0, "AutoDetector: auto": 4.0}
"""Seconds of processor time on a quiet machine, beyond importing scikit-learn."""


class Events:
    """numba's compile events: (name, seconds in all, seconds without what it calls) of each function."""

    def __init__(self) -> None:
        from numba.core import event

        self.found: list[tuple[str, float, float]] = []
        self._open: list[list[float]] = []

        class Listener(event.Listener):
            on_start = staticmethod(lambda event: self._open.append([time.perf_counter(), 0.0]))
            on_end = staticmethod(self._end)

        event.register("numba:compile", Listener())

    def _end(self, event) -> None:
        start, inside = self._open.pop()
        seconds = time.perf_counter() - start
        if self._open:
            self._open[-1][1] += seconds
        self.found.append((event.data["dispatcher"].__name__, seconds, seconds - inside))


class Steps:
    """What a user does first, each with names of its own."""

    def __init__(self, rows: int) -> None:
        import numpy as np

        self.X = np.random.default_rng(0).standard_normal((rows, 5))
        self.y = np.repeat([1, -1], [rows - rows // 5, rows // 5])

    def run(self, name: str) -> None:
        getattr(self, "_" + name.replace(" ", "_"))()

    def _import(self) -> None:
        import refkernel

        self.rk = refkernel

    def _fit(self) -> None:
        self.model = self.rk.SVDD(self.rk.RBF(scale=1.0), nu=0.1).fit(self.X)

    def _predict(self) -> None:
        self.model.predict(self.X)

    def _search(self) -> None:
        self.rk.OneClassGridSearch(self.rk.SVDD(self.rk.RBF()), {"nu": [0.1, 0.2], "kernel__scale": [0.3, 1.0]}).fit(self.X, self.y)

    def _default_SVDD(self) -> None:
        self.rk.SVDD().fit(self.X).predict(self.X)

    def _default_OneClassSVM(self) -> None:
        self.rk.OneClassSVM().fit(self.X).predict(self.X)

    def _auto(self) -> None:
        self.rk.AutoDetector().fit(self.X).predict(self.X)

    def _command(self, *options: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            table, model = Path(folder, "table.csv"), Path(folder, "model.rk")
            with table.open("w", newline="") as file:
                csv.writer(file).writerows([[f"c{j}" for j in range(5)], *self.X.tolist()])
            sys.argv = ["refkernel", "fit", str(table), "--out", str(model), *options]
            from refkernel.cli import main

            with contextlib.suppress(SystemExit):
                main()
            model.stat()  # it was written

    def _command_of_svdd(self) -> None:
        self._command("--model", "svdd")


def child(scenario: str, rows: int, functions: bool) -> None:
    """Runs one scenario in this process."""
    steps = Steps(rows)
    events, report = Events(), []
    for name in SCENARIOS[scenario]:
        before, start = len(events.found), time.perf_counter()
        steps.run(name)
        seconds, new = time.perf_counter() - start, events.found[before:]
        step = f"{scenario}: {name}"
        aim = f"   (aim {AIMS[step]:g})" if step in AIMS else ""
        report.append(f"{step:<48}{seconds:7.2f} s, compiling {sum(own for *_, own in new):6.2f} s, {len(new):3d} functions{aim}")
        report += [f"    {name:<24}{whole:7.3f}{own:8.3f}" for name, whole, own in new if functions]
    print("\n".join(report), file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--functions", action="store_true", help="list the functions that are compiled")
    parser.add_argument("--scenario", choices=SCENARIOS, help="one of them, in this process")
    options = parser.parse_args()
    if options.scenario:
        return child(options.scenario, options.rows, options.functions)
    for scenario in SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-W", "ignore", *sys.argv, "--scenario", scenario]
            subprocess.run(command, check=True, env=os.environ | {"NUMBA_CACHE_DIR": folder}, stdout=subprocess.DEVNULL)
    return None


if __name__ == "__main__":
    main()
