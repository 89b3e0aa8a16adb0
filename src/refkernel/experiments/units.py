"""Rows on disk as they are computed: units in parallel, a killed run continued where it was."""

from __future__ import annotations

import csv
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

from ..exceptions import ResultsError


def run_units(
    compute: Callable,
    units: Sequence,
    size: int,
    columns: Sequence[str],
    settings: dict[str, Any],
    out,
    *,
    jobs: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> dict[str, Any]:
    """Compute what is not yet in the folder ``out``; returns the contents of its run.json, with seconds by stage.

    ``compute(unit)`` gives ``size`` rows and the seconds of its stages. Rows are appended unit by unit, in one order whatever
    ``jobs``; ``progress(done, total)`` is called as units end. Folders of other ``settings`` are refused.
    """
    out = Path(out)
    previous = _prepare(out, settings)
    done = _finished_units(out / "rows.csv", units, size, columns)
    progress(done, len(units))
    start, stages = time.perf_counter(), dict(previous.get("stages", {}))
    with open(out / "rows.csv", "a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n")
        results = Parallel(n_jobs=jobs, return_as="generator", batch_size=1)(delayed(compute)(unit) for unit in units[done:])
        for number, (rows, spent) in enumerate(results, start=done + 1):
            writer.writerows(rows)
            file.flush()
            for stage, seconds in spent.items():
                stages[stage] = stages.get(stage, 0.0) + seconds
            progress(number, len(units))
    seconds = previous.get("seconds", 0.0) + (time.perf_counter() - start if done < len(units) else 0.0)
    facts = {**previous, "seconds": round(seconds, 3), "stages": {k: round(v, 3) for k, v in stages.items()}, "finished": True}
    write_json(out / "run.json", facts)
    return facts


def _prepare(out, settings):
    """The folder with its run.json; refused if it belongs to a run with other settings."""
    path = out / "run.json"
    try:
        out.mkdir(parents=True, exist_ok=True)
        if path.exists():
            return _matching(path, settings)
        if (out / "rows.csv").exists():
            raise ResultsError(f"{out} holds a rows.csv without its run.json: it cannot be continued. Name another folder with --out.")
        facts = {"settings": settings, **_circumstances()}
        write_json(path, facts)
        return facts
    except OSError as error:
        raise ResultsError(f"{out} cannot be written: {error}. Name another folder with --out.") from error


def _matching(path, settings):
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        before = facts["settings"]
    except (ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{path} is damaged: {error}. Name another folder with --out, or delete this one.") from error
    changed = [f"{name} {before.get(name)!r} -> {now!r}" for name, now in settings.items() if before.get(name) != now]
    if changed:
        raise ResultsError(f"{path.parent} holds a run with other settings ({'; '.join(changed)}). Name another folder with --out.")
    return facts


def _finished_units(path, units, size, columns):
    """The number of units whose rows are all there; a last one that was cut off is removed."""
    if not path.exists():
        _write_text(path, ",".join(columns) + "\n")
        return 0
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    complete = [line for line in lines if line.endswith("\n")]
    if not complete or complete[0].strip() != ",".join(columns):
        raise ResultsError(f"{path} does not begin with the columns of this version. Name another folder with --out, or delete this one.")
    done = (len(complete) - 1) // size
    rows = list(csv.DictReader(complete[: 1 + done * size]))
    if done > len(units):
        raise ResultsError(f"{path} holds more rows than this run has. Name another folder with --out, or delete this one.")
    for number, row in enumerate(rows):
        unit = units[number // size]
        if None in row.values() or (row["task"], row["split"], row["repeat"]) != (unit.task, str(unit.split), str(unit.repeat)):
            raise ResultsError(f"{path} is damaged at line {number + 2}. Name another --out, or delete that line and all after it.")
    if len(lines) > 1 + done * size:
        _write_text(path, "".join(complete[: 1 + done * size]))
    return done


def _circumstances():
    packages = ("refkernel", "numpy", "scipy", "scikit-learn", "numba")
    return {
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
        "commit": _commit(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _commit():
    """The commit of the checkout that this file is in, if it is in one."""
    try:
        found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()


def write_json(path, facts):
    _write_text(path, json.dumps(facts, indent=2) + "\n")


def _write_text(path, text):
    """Write whole or not at all."""
    temporary = path.with_name(path.name + ".partial")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
