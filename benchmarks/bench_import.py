"""How long the first answers take: `python benchmarks/bench_import.py [--rounds 7]`. Processes in turn; what counts is the ratio.

`refkernel --help` and `--version` beside `import numpy` (at most 3 times as long), `import refkernel` beside `import sklearn.svm` (at most
1.1 times).
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

COMMAND = "from refkernel.cli import main; main()"
CALLS = {
    "import numpy": ["-c", "import numpy"],
    "refkernel --help": ["-c", COMMAND, "--help"],
    "refkernel --version": ["-c", COMMAND, "--version"],
    "import sklearn.svm": ["-c", "import sklearn.svm"],
    "import refkernel": ["-c", "import refkernel"],
}
LIMITS = {
    ("refkernel --help", "import numpy"): 3.0,
    ("refkernel --version", "import numpy"): 3.0,
    ("import refkernel", "import sklearn.svm"): 1.1,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    times: dict[str, list[float]] = {name: [] for name in CALLS}
    for _ in range(1 + parser.parse_args().rounds):
        for name, arguments in CALLS.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
            times[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values[1:]) for name, values in times.items()}  # the first round warms the file cache
    for name, seconds in medians.items():
        print(f"{name:<22}{seconds:6.3f} s")
    for (name, peer), limit in LIMITS.items():
        ratio = medians[name] / medians[peer]
        print(f"{name} takes {ratio:.2f} × {peer} (limit {limit:g}){'' if ratio <= limit else ': too slow'}")


if __name__ == "__main__":
    main()
