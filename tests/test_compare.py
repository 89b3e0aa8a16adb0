"""Two models on the same rows: what changes when one replaces the other."""

import numpy as np
import pandas as pd
import pytest

import refkernel as rk

typer_testing = pytest.importorskip("typer.testing")


def table(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"flow": rng.normal(5 + shift, 1, n), "machine": rng.choice(["saw", "press"], n)})


@pytest.fixture(scope="module")
def models():
    return rk.TableDetector().fit(table(150, 0)), rk.TableDetector().fit(table(150, 1, shift=4))


def test_changes_are_those_of_the_labels(models):
    rows = pd.concat([table(40, 2), table(40, 3, shift=4)], ignore_index=True)
    found = rk.compare(*models, rows)
    was, now = (model.predict(rows) for model in models)
    assert (found.label_old == was).all()
    assert (found.p_value_new == models[1].p_values(rows)).all()
    assert found.change.tolist() == ["flagged" if b < a else "accepted" if b > a else "" for a, b in zip(was, now, strict=True)]
    assert {"flagged", "accepted"} <= set(found.change)


def test_a_model_changes_nothing_beside_itself(models):
    assert (rk.compare(models[0], models[0], table(50, 4)).change == "").all()


def test_the_command_counts_explains_and_writes(models, tmp_path):
    from refkernel.cli import app

    old, new, data, out = (tmp_path / name for name in ("old.rk", "new.rk", "rows.csv", "out.csv"))
    models[0].save(old)
    models[1].save(new)
    rows = pd.concat([table(40, 2), table(40, 3, shift=4)], ignore_index=True)
    rows.to_csv(data, index=False)
    done = typer_testing.CliRunner().invoke(app, ["compare", str(old), str(new), str(data), "--out", str(out)])
    assert done.exit_code == 0, done.output
    expected = rk.compare(*models, rows)
    counts = expected.change.value_counts()
    assert f"{counts['flagged']} newly flagged, {counts['accepted']} newly accepted" in done.output
    assert "flow = " in done.output
    written = pd.read_csv(out, keep_default_na=False)
    assert written.change.tolist() == expected.change.tolist()
    assert written.row.tolist() == list(range(1, 81))


def test_a_model_that_lacks_a_column_is_named(models, tmp_path):
    from refkernel.cli import app

    old, data = tmp_path / "old.rk", tmp_path / "rows.csv"
    models[0].save(old)
    table(5, 0)[["flow"]].to_csv(data, index=False)
    done = typer_testing.CliRunner().invoke(app, ["compare", str(old), str(old), str(data)])
    assert done.exit_code == 1
    assert "machine" in done.output


def test_models_without_p_values_and_empty_tables_are_compared(models, tmp_path):
    """Their p-values are empty, and the columns are the same."""
    from refkernel.cli import app

    plain = rk.TableDetector(rk.SVDD()).fit(table(150, 0))
    rows = table(40, 3, shift=4)
    found = rk.compare(plain, models[1], rows)
    assert found.p_value_old.isna().all()
    assert found.p_value_new.notna().all()
    assert (found.change == "accepted").any()
    crossed = rk.ConformalDetector(rk.TableDetector(rk.SVDD()), method="cv").fit(table(150, 0))
    assert rk.compare(plain, crossed, rows).p_value_old.isna().all()
    X = rows[["flow"]].to_numpy()
    arrays = rk.compare(rk.SVDD().fit(X[:20]), rk.SVDD().fit(X), X.tolist())
    assert list(arrays) == list(found) == list(rk.compare(plain, models[1], rows[:0]))
    old, new, data, out = (tmp_path / name for name in ("old.rk", "new.rk", "rows.csv", "out.csv"))
    plain.save(old)
    models[1].save(new)
    for part in (rows, rows[:0]):
        part.to_csv(data, index=False)
        done = typer_testing.CliRunner().invoke(app, ["compare", str(old), str(new), str(data), "--out", str(out)])
        assert done.exit_code == 0, done.output
        assert list(pd.read_csv(out)) == ["row", *found]
    assert "flags 0 of 0 rows" in done.output


def test_the_first_reasons_of_both_models_are_told_for_rows_that_change(models):
    """Oracle: the reasons of each."""
    rows = pd.concat([table(40, 2), table(40, 3, shift=4)], ignore_index=True)
    found = rk.compare(*models, rows)
    for name, model in zip(("reason_old", "reason_new"), models, strict=True):
        expected = [str(mine[0]) if change else "" for mine, change in zip(model.reasons(rows, 1), found.change, strict=True)]
        assert found[name].tolist() == expected
