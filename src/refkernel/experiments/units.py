"""Experiments as rows on disk (rows.csv and run.json): units run in parallel, and a run that was cut off continues where it stopped."""

import csv
import json
import os
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar

from joblib import Parallel, delayed, effective_n_jobs, parallel_config

from .._core.files import append_text, only_writer, write_text
from .._core.types import StrPath
from ..exceptions import ResultsError

A = TypeVar("A")
T = TypeVar("T")
ROWS, RUN = "rows.csv", "run.json"
ELSEWHERE = "Name another folder with --out"


def run_units(
    compute: Callable[[Any], tuple[list[dict[str, Any]], dict[str, float]]],
    units: Sequence[Any],
    size: int,
    columns: Sequence[str],
    settings: dict[str, Any],
    out: StrPath,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
    facts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Compute the units that the folder ``out`` lacks, and return the contents of its run.json, with seconds by stage.

    ``compute(unit)`` returns the ``size`` rows of a unit, which its ``key`` identifies, and the seconds of its stages. Rows are appended
    unit by unit, in the same order for any ``jobs``; nothing is written before the first. ``facts`` go into run.json at the end. A folder
    with other ``settings``, or one that another process is writing, is refused.
    """
    out, settings = Path(out), json.loads(json.dumps(settings))  # as they will be read again
    with only_writer(out, ".lock", ELSEWHERE):
        begun = (out / ROWS).exists() and (out / ROWS).stat().st_size
        run = _continued(out / RUN, settings) if begun else _new(settings)
        done = _finished_units(out / ROWS, units, size, columns) if begun else 0
        progress(done, len(units))
        start, stages = time.perf_counter(), Counter(run.get("stages", {}))
        for number, (rows, spent) in enumerate(in_processes(compute, units[done:], jobs), start=done + 1):
            text = StringIO()
            writer = csv.DictWriter(text, columns, lineterminator="\n")
            if not begun and number == 1:
                write_text(out / RUN, json.dumps(run, indent=2) + "\n")
                writer.writeheader()
            writer.writerows(rows)
            append_text(out / ROWS, text.getvalue())
            stages.update(spent)
            progress(number, len(units))
        seconds = run.get("seconds", 0.0) + (time.perf_counter() - start if done < len(units) else 0.0)
        times = {"seconds": round(seconds, 3), "stages": {stage: round(spent, 3) for stage, spent in stages.items()}}
        run |= {**times, "finished": True, **(facts or {})}
        write_text(out / RUN, json.dumps(run, indent=2) + "\n")
    return run


def in_processes(work: Callable[[A], T], items: Iterable[A], jobs: int = 1) -> Iterator[T]:
    """``work(item)`` for every item, in their order, by ``jobs`` processes (-1: one for each core) with one thread each."""
    if effective_n_jobs(jobs) == 1:
        yield from map(work, items)
        return
    with parallel_config("loky", inner_max_num_threads=1):
        yield from Parallel(n_jobs=jobs, return_as="generator")(delayed(work)(item) for item in items)


def read_run(folder: StrPath) -> dict[str, Any]:
    """What run.json says; empty if there is none, since pages can do without it."""
    path = Path(folder) / RUN
    run = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {name: value for name, value in run.items() if value is not None}


def provenance(run: dict[str, Any]) -> str:
    """How long a run took, with what and from which commit, for the end of its page; what run.json lacks is left out."""
    seconds, stages = run.get("seconds"), sorted(run.get("stages", {}).items(), key=lambda item: -item[1])
    said = []
    if seconds and stages:
        wall = f"{seconds:.1f} s" if seconds < 120 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
        speed = f"; {run['fits']:,} fits, {run['fits'] / seconds:,.0f} per second" if "fits" in run else ""
        said += [f"{wall} of wall time{speed}.", f"Seconds of all processes: {', '.join(f'{name} {spent:.0f}' for name, spent in stages)}."]
    if versions := {**run.get("versions", {}), **run.get("peers", {})}:
        said.append(", ".join(f"{name} {number}" for name, number in versions.items()) + ".")
    return " ".join([*said, f"Commit {run['commit'][:12]}." if "commit" in run else ""]).strip()


def read_rows(folder: StrPath, command: str, columns: Iterable[str], **options: Any) -> Any:
    """The data frame of rows that ``refkernel command`` wrote into a folder, checked for these columns; ``options`` go to pandas."""
    import pandas as pd  # only reading needs it

    if not (path := Path(folder) / ROWS).is_file():
        raise FileNotFoundError(f"{path} does not exist. Run `refkernel {command} --out {folder}` first, or name another folder.")
    rows = pd.read_csv(path, **options)
    if missing := [name for name in columns if name not in rows]:
        raise ValueError(f"{path} lacks the columns {', '.join(missing)}. It is not the rows.csv of `refkernel {command}`.")
    if rows.empty:
        raise ValueError(f"{path} holds no run yet. Let `refkernel {command}` finish at least one.")
    return rows


def _new(settings: dict[str, Any]) -> dict[str, Any]:
    """What run.json says of a new run."""
    packages = ("refkernel", "numpy", "scipy", "scikit-learn", "numba")
    try:  # in a checkout
        found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent, check=True)
        commit = found.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        commit = None
    return {
        "settings": settings,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
        "commit": commit,
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _continued(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """What run.json says; refused if it belongs to a run with other settings."""
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
        before = run["settings"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{path} is damaged or missing: {error}. {ELSEWHERE}, or delete this one.") from error
    if changed := [f"{name} {before.get(name)!r} -> {now!r}" for name, now in settings.items() if before.get(name) != now]:
        raise ResultsError(f"{path.parent} holds a run with other settings ({'; '.join(changed)}). {ELSEWHERE}.")
    return run


def _finished_units(path: Path, units: Sequence[Any], size: int, columns: Sequence[str]) -> int:
    """The number of units whose rows are all there; the rows of one that was cut off are removed."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    complete = [line for line in lines if line.endswith("\n")]
    if not complete or complete[0].strip() != ",".join(columns):
        raise ResultsError(f"{path} does not begin with the columns of this version. {ELSEWHERE}, or delete this one.")
    if (done := (len(complete) - 1) // size) > len(units):
        raise ResultsError(f"{path} holds more rows than this run would write. {ELSEWHERE}, or delete this one.")
    for number, row in enumerate(csv.DictReader(complete[: 1 + done * size])):
        if None in row.values() or any(row[name] != str(value) for name, value in units[number // size].key.items()):
            raise ResultsError(f"{path} is damaged at line {number + 2}. {ELSEWHERE}, or delete that line and all after it.")
    if len(lines) > 1 + done * size:
        write_text(path, "".join(complete[: 1 + done * size]))
    return done
