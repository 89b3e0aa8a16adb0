"""Any experiment can run as units: what is asked of it is a key, rows and stages."""

import csv
import errno
import os
from dataclasses import dataclass

import pytest

from refkernel._core import files
from refkernel.exceptions import ResultsError
from refkernel.experiments.units import in_processes, read_run, run_units

COLUMNS = ("table", "seed", "method", "score")


@dataclass(frozen=True)
class Unit:
    table: str
    seed: int

    @property
    def key(self):
        return {"table": self.table, "seed": self.seed}


UNITS = [Unit(table, seed) for table in ('wine, "red"', "glass") for seed in range(3)]


def compute(unit):
    """Two rows, and a second of work."""
    return [{**unit.key, "method": method, "score": len(unit.table) + unit.seed} for method in ("a", "b")], {"work": 1.0}


def run(folder, work=compute, settings=None, **options):
    return run_units(work, UNITS, 2, COLUMNS, settings or {"seed": 0}, folder, **options)


def rows_of(folder):
    with open(folder / "rows.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("stop", range(len(UNITS)))
def test_a_run_that_breaks_after_any_unit_continues_to_the_same_rows(tmp_path, stop):
    """Each unit is computed once, and the seconds of both runs add up."""
    computed = []

    def breaks(unit):
        if len(computed) == stop:
            computed.append(None)
            raise ZeroDivisionError
        computed.append(unit)
        return compute(unit)

    with pytest.raises(ZeroDivisionError):
        run(tmp_path / "a", breaks)
    run(tmp_path / "a", breaks)
    run(tmp_path / "b")
    assert rows_of(tmp_path / "a") == rows_of(tmp_path / "b")
    assert [unit for unit in computed if unit is not None] == UNITS


def test_a_run_that_finished_nothing_does_not_block_the_next(tmp_path):
    """Nothing that tells one run from another is left, so the folder serves a run with other settings."""

    def fails(unit):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(tmp_path, fails)
    assert not (tmp_path / "rows.csv").exists()
    assert not (tmp_path / "run.json").exists()
    run(tmp_path, settings={"seed": 1})
    assert len(rows_of(tmp_path)) == 12


@pytest.mark.parametrize("jobs", [1, 2])
def test_results_come_in_order(jobs):
    """Whichever process computed an item, its result has its place."""
    assert list(in_processes(str, range(20), jobs)) == [str(number) for number in range(20)]


def test_every_process_computes_with_one_thread():
    """Two processes with two threads each would wait for each other on two cores."""
    from threadpoolctl import threadpool_info

    found = list(in_processes(lambda _: (os.getpid(), {library["num_threads"] for library in threadpool_info()}), range(8), jobs=2))
    assert os.getpid() not in {process for process, _ in found}
    assert {threads for _, seen in found for threads in seen} <= {1}


def test_an_error_in_another_process_is_raised_here():
    """It is not lost, and the processes serve the next run."""
    here = os.getpid()

    def fails_elsewhere(item):
        if os.getpid() != here:
            raise ZeroDivisionError
        return item

    with pytest.raises(ZeroDivisionError):
        list(in_processes(fails_elsewhere, range(20), jobs=2))
    assert list(in_processes(str, range(3), jobs=2)) == ["0", "1", "2"]


def test_facts_and_stages_are_in_run_json(tmp_path):
    facts = run(tmp_path, facts={"fits": 12})
    assert facts == read_run(tmp_path) | {"commit": facts["commit"]}
    assert (facts["fits"], facts["stages"], facts["finished"]) == (12, {"work": 6.0}, True)


def test_rows_of_other_units_are_refused(tmp_path):
    run(tmp_path)
    text = (tmp_path / "rows.csv").read_text()
    (tmp_path / "rows.csv").write_text(text.replace("glass,1", "glass,2"))
    with pytest.raises(ResultsError, match="damaged at line 10"):
        run(tmp_path)


def test_a_folder_on_a_disk_without_locks_is_written_with_a_warning(tmp_path, monkeypatch):
    def unsupported(descriptor):
        raise OSError(errno.ENOTSUP, "no locks here")

    monkeypatch.setattr(files, "_lock", unsupported)
    with pytest.warns(UserWarning, match=r"cannot be locked .*no locks here"):
        run(tmp_path)
    assert len(rows_of(tmp_path)) == 12
