"""Experiments as rows on disk: units run in parallel, and a run that was cut off continues where it stopped.

A results folder holds rows.csv, with one block of rows for each unit, and run.json: settings, versions, machine and times.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from .._files import append_text, write_text
from .._typing import StrPath
from ..exceptions import ResultsError
from .locking import ELSEWHERE, only_writer
from .processes import in_processes

if TYPE_CHECKING:
    import pandas as pd

ROWS, RUN = "rows.csv", "run.json"


Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of finished units and their total number."""


def no_progress(done: int, total: int) -> None:
    """Show nothing."""


class HasKey(Protocol):
    """A unit: ``key`` holds the columns that identify its rows."""

    @property
    def key(self) -> dict[str, Any]: ...


def run_units(
    compute: Callable[[Any], tuple[list[dict[str, Any]], dict[str, float]]],
    units: Sequence[HasKey],
    size: int,
    columns: Sequence[str],
    settings: dict[str, Any],
    out: StrPath,
    *,
    jobs: int = 1,
    progress: Progress = no_progress,
    facts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Compute the units that the folder ``out`` lacks, and return the contents of its run.json, with seconds by stage.

    ``compute(unit)`` returns the ``size`` rows of a unit and the seconds of its stages. Rows are appended unit by unit, in the same
    order for any ``jobs``; ``progress(done, total)`` is called as units finish; ``facts`` go into run.json at the end. A folder with
    other ``settings``, or one that another process is writing, is refused.
    """
    out = Path(out)
    with only_writer(out):
        previous = _prepare(out, settings)
        done = _finished_units(out / ROWS, units, size, columns)
        progress(done, len(units))
        start, stages = time.perf_counter(), dict(previous.get("stages", {}))
        for number, (rows, spent) in enumerate(in_processes(compute, units[done:], jobs), start=done + 1):
            append_text(out / ROWS, _as_csv(rows, columns))
            for stage, seconds in spent.items():
                stages[stage] = stages.get(stage, 0.0) + seconds
            progress(number, len(units))
        seconds = previous.get("seconds", 0.0) + (time.perf_counter() - start if done < len(units) else 0.0)
        times = {"seconds": round(seconds, 3), "stages": {stage: round(spent, 3) for stage, spent in stages.items()}}
        found = {**previous, **times, "finished": True, **(facts or {})}
        _write_run(out, found)
    return found


def read_run(folder: StrPath) -> dict[str, Any]:
    """What run.json says; empty if there is none, since pages can do without it."""
    path = Path(folder) / RUN
    run = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {name: value for name, value in run.items() if value is not None}


def read_rows(folder: StrPath, command: str, columns: Iterable[str], **options: Any) -> pd.DataFrame:
    """The rows that ``refkernel command`` wrote into a folder, checked for these columns; ``options`` go to pandas."""
    import pandas as pd  # only reading needs it

    path = Path(folder) / ROWS
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist. Run `refkernel {command} --out {folder}` first, or name another folder.")
    rows = pd.read_csv(path, **options)
    missing = [name for name in columns if name not in rows]
    if missing:
        raise ValueError(f"{path} lacks the columns {', '.join(missing)}. It is not the rows.csv of `refkernel {command}`.")
    if rows.empty:
        raise ValueError(f"{path} holds no run yet. Let `refkernel {command}` finish at least one.")
    return rows


def _prepare(out: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """The contents of run.json, written if the folder is new; refused if it belongs to a run with other settings."""
    path = out / RUN
    if path.exists():
        return _matching(path, settings)
    if (out / ROWS).exists():
        raise ResultsError(f"{out} holds a {ROWS} without its {RUN}: it cannot be continued. {ELSEWHERE}.")
    facts = {"settings": settings, **_circumstances()}
    try:
        _write_run(out, facts)
    except OSError as error:
        raise ResultsError(f"{out} cannot be written: {error}. {ELSEWHERE}.") from error
    return facts


def _matching(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        before = facts["settings"]
    except (ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{path} is damaged: {error}. {ELSEWHERE}, or delete this one.") from error
    changed = [f"{name} {before.get(name)!r} -> {now!r}" for name, now in settings.items() if before.get(name) != now]
    if changed:
        raise ResultsError(f"{path.parent} holds a run with other settings ({'; '.join(changed)}). {ELSEWHERE}.")
    return facts


def _finished_units(path: Path, units: Sequence[HasKey], size: int, columns: Sequence[str]) -> int:
    """The number of units whose rows are all there; the rows of one that was cut off are removed."""
    if not path.exists():
        write_text(path, ",".join(columns) + "\n")
        return 0
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    complete = [line for line in lines if line.endswith("\n")]
    if not complete or complete[0].strip() != ",".join(columns):
        raise ResultsError(f"{path} does not begin with the columns of this version. {ELSEWHERE}, or delete this one.")
    done = (len(complete) - 1) // size
    if done > len(units):
        raise ResultsError(f"{path} holds more rows than this run would write. {ELSEWHERE}, or delete this one.")
    for number, row in enumerate(csv.DictReader(complete[: 1 + done * size])):
        key = units[number // size].key
        if None in row.values() or any(row[name] != str(value) for name, value in key.items()):
            raise ResultsError(f"{path} is damaged at line {number + 2}. {ELSEWHERE}, or delete that line and all after it.")
    if len(lines) > 1 + done * size:
        write_text(path, "".join(complete[: 1 + done * size]))
    return done


def _as_csv(rows: list[dict[str, Any]], columns: Sequence[str]) -> str:
    text = StringIO()
    csv.DictWriter(text, columns, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _write_run(out: Path, facts: dict[str, Any]) -> None:
    write_text(out / RUN, json.dumps(facts, indent=2) + "\n")


def _circumstances() -> dict[str, Any]:
    packages = ("refkernel", "numpy", "scipy", "scikit-learn", "numba")
    return {
        "versions": {"python": platform.python_version(), **{name: version(name) for name in packages}},
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
        "commit": _commit(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _commit() -> str | None:
    """The commit of the checkout that this file is in, if it is in one."""
    try:
        found = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=Path(__file__).parent, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()
