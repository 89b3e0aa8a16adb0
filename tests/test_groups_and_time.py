"""A rate for each group (Mondrian calibration), and rows in order of time, where stretches are left out together."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import IsolationForest

import refkernel as rk
from refkernel.detectors.calibration.promise import worth

DETECTORS = {
    "AutoDetector": lambda rate: rk.AutoDetector(rate),
    "split": lambda rate: rk.ConformalDetector(rk.ESVDD(), rate, method="split", calibration_size=0.5, random_state=0),
    "cv": lambda rate: rk.ConformalDetector(rk.ESVDD(), rate, method="cv", random_state=0),
}


def machines(n, rng, names=("press", "saw")):
    """Rows of two machines, the second one twice as noisy, and their names."""
    group = rng.choice(names, n)
    return rng.normal(size=(n, 3)) * np.where(group == names[1], 2.0, 1.0)[:, None], group


@pytest.mark.parametrize("kind", DETECTORS)
def test_each_group_keeps_the_rate_where_one_threshold_for_all_does_not(kind):
    """At 5 % one threshold gives the quiet machine below 1.5 % and the noisy one above 7.5 %; groups give both 5 % on average.

    12 fits to 400 rows each: the standard error of a group's mean rate is 0.5 points, and the law allows 1.5.
    """
    own, common = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, group = machines(400, rng)
        new, of_new = machines(4000, rng)
        model = DETECTORS[kind](0.05).fit(X, groups=group)
        for found, labels in ((own, model.predict(new, groups=of_new)), (common, model.predict(new))):
            found.append([(labels[of_new == name] == -1).mean() for name in ("press", "saw")])
    quiet, noisy = np.mean(common, axis=0)
    assert quiet < 0.015
    assert noisy > 0.075
    assert (np.mean(own, axis=0) < 0.065).all()
    assert (np.mean(own, axis=0) > 0.02).all()


@pytest.mark.parametrize("kind", ["AutoDetector", "split"])
def test_a_p_value_is_the_rank_among_the_rows_of_the_group(kind):
    """The oracle counts calibration rows of the group one by one; groups of too few rows, and unknown ones, count all of them."""
    rng = np.random.default_rng(1)
    X, group = machines(300, rng)
    group = np.where(np.arange(300) < 12, "lathe", group)
    new = rng.normal(size=(40, 3)) * 1.5
    of_new = np.resize(["press", "saw", "lathe", "never seen", None], 40)
    with pytest.warns(UserWarning, match="fewer than the 19 calibration rows.*lathe"):
        model = DETECTORS[kind](0.05).fit(X, groups=group)
    held = model._calibrating()
    assert model.groups_["lathe"] is None
    score = model.score_samples(new) if kind == "AutoDetector" else model.models_.score_matrix(new)[:, 0]
    for s, name, p, label in zip(score, of_new, model.p_values(new, groups=of_new), model.predict(new, groups=of_new), strict=True):
        own = name in ("press", "saw")
        scores = [held.scores[i] for i in range(len(held.scores)) if not own or group[held.indices[i]] == name]
        expected = (1 + sum(other <= s for other in scores)) / (len(scores) + 1)
        assert p == pytest.approx(expected, abs=1e-12)
        rate = model.groups_[name].rate if own else model.false_alarm_rate_
        assert (label == -1) == (p <= rate + 1e-12)


def test_another_rate_and_a_file_keep_the_groups(tmp_path):
    rng = np.random.default_rng(2)
    X, group = machines(400, rng)
    model = rk.AutoDetector(0.05).fit(X, groups=group)
    path = rk.save(model.with_false_alarm_rate(0.2), tmp_path / "model.rk")
    loaded = rk.load(path)
    new, of_new = machines(300, rng)
    np.testing.assert_array_equal(loaded.p_values(new, groups=of_new), model.p_values(new, groups=of_new))
    assert loaded.groups_["saw"].rate == pytest.approx(0.2, abs=0.01)
    assert model.select(new, groups=of_new).shape == (300,)


def test_mistakes_with_groups_are_named():
    X, group = machines(200, np.random.default_rng(3))
    with pytest.raises(ValueError, match="groups has 199 values, and X has 200 rows"):
        rk.AutoDetector().fit(X, groups=group[1:])
    with pytest.raises(ValueError, match="fitted without groups: pass groups to fit, too"):
        rk.AutoDetector().fit(X).predict(X, groups=group)
    with pytest.raises(ValueError, match="IsolationForest keeps no rate for each group"):
        rk.TableDetector(IsolationForest(), group_column="m").fit(pd.DataFrame(X, columns=list("abc")).assign(m=group))


def test_numbers_name_groups_whatever_their_type():
    """A column of machine numbers is of floats as soon as one is missing; the missing one has no group."""
    X, group = machines(200, np.random.default_rng(4), names=(1, 2))
    model = rk.AutoDetector().fit(X, groups=group)
    floats = group.astype(float)
    np.testing.assert_array_equal(model.predict(X, groups=floats), model.predict(X, groups=group))
    floats[0] = np.nan
    assert model.p_values(X, groups=floats)[0] == model.p_values(X)[0]
    assert list(model.groups_) == ["1", "2"]


def test_a_table_names_its_groups_by_a_column():
    """The column is not described, and is needed for new rows."""
    rng = np.random.default_rng(5)
    X, group = machines(300, rng)
    table = pd.DataFrame(X, columns=list("abc")).assign(machine=group)
    model = rk.TableDetector(group_column="machine").fit(table)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert set(model.groups_) == {"press", "saw"} == set(model.card_["groups"])
    with pytest.raises(ValueError, match="no column 'machine', which names the group"):
        model.predict(table.drop(columns="machine"))
    new, of_new = machines(2000, rng)
    labels = model.predict(pd.DataFrame(new, columns=list("abc")).assign(machine=of_new))
    assert max((labels[of_new == name] == -1).mean() for name in ("press", "saw")) < 0.09


def test_a_promise_about_encoded_rows_is_refused_and_the_other_way_round_holds():
    """A conformal detector that calibrates rows which taught the encoder delivered 50 % at 5 % on tables of names."""
    rng = np.random.default_rng(6)

    def orders(n):
        names = {f"name_{j}": [f"c{k}" for k in rng.zipf(1.4, n)] for j in range(2)}
        return pd.DataFrame(names | {"amount": rng.lognormal(3, 1, n)})

    with pytest.raises(ValueError, match="turn them round"):
        rk.TableDetector(rk.ConformalDetector(rk.SVDD())).fit(orders(100))
    found = []
    for _ in range(6):
        model = rk.ConformalDetector(rk.TableDetector(rk.SVDD(rk.RBF(1.0))), 0.05, random_state=0).fit(orders(150))
        found.append((model.predict(orders(500)) == -1).mean())
    assert np.mean(found) < 0.09  # their standard error is 1 point


def slow(n, rng, resemblance):
    """Rows that follow each other and resemble each other: a stationary autoregression with variance 1."""
    X = rng.normal(size=(n, 3))
    for i in range(1, n):
        X[i] = resemblance * X[i - 1] + np.sqrt(1 - resemblance**2) * X[i]
    return X


@pytest.mark.parametrize("kind", DETECTORS)
def test_stretches_of_time_keep_the_rate_of_rows_that_resemble_each_other(kind):
    """Single rows that are left out have neighbours in training, and look more normal than new rows.

    10 fits to 500 rows that are worth about 25 independent ones: the standard error of the mean is below 1.5 points, and the law allows 4.
    """
    plain, timed = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, new = slow(500, rng, 0.9), rng.normal(size=(2000, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain.append((DETECTORS[kind](0.05).fit(X).predict(new) == -1).mean())
            timed.append((DETECTORS[kind](0.05).fit(X, time=np.arange(500)).predict(new) == -1).mean())
    assert np.mean(timed) < 0.09
    if kind == "AutoDetector":
        assert np.mean(plain) > 0.09


def test_the_order_of_the_table_does_not_count_where_times_are_given():
    rng = np.random.default_rng(6)
    X, time = slow(300, rng, 0.9), pd.date_range("2026-01-01", periods=300, freq="h")
    shuffled = rng.permutation(300)
    one = rk.ConformalDetector(rk.ESVDD(), method="cv").fit(X, time=time)
    other = rk.ConformalDetector(rk.ESVDD(), method="cv").fit(X[shuffled], time=time[shuffled])
    np.testing.assert_allclose(np.sort(one.calibration_scores_), np.sort(other.calibration_scores_), rtol=1e-9)
    assert one.calibration_worth_ == other.calibration_worth_ < 0.6


def test_repeated_rows_are_worth_one():
    """Twenty times the same row in a row counts as one row: the variance of counts is twenty times as large."""
    rng = np.random.default_rng(7)
    found = [worth(np.repeat(rng.random(300) < 0.1, 20)) for _ in range(200)]
    assert np.median(found) == pytest.approx(1 / 20, rel=0.15)  # the variance of 15 counts has an error of 38 %, its median of 3 %
    independent = [worth(rng.random(6000) < 0.1) for _ in range(200)]
    assert np.mean(independent) > 0.8


def test_the_note_says_what_resemblance_costs():
    rng = np.random.default_rng(8)
    X = slow(600, rng, 0.95)
    with pytest.warns(UserWarning, match=r"600 calibration rows are worth about \d+ independent rows"):
        timed = rk.AutoDetector().fit(X, time=np.arange(600))
    low, high = timed.false_alarm_interval_
    assert high - low > 1.3 * np.ptp(rk.AutoDetector().fit(X).false_alarm_interval_)


def test_mistakes_with_times_are_named():
    X = np.random.default_rng(9).normal(size=(50, 2))
    for time, message in (
        (np.arange(49), "time has 49 values, and X has 50 rows"),
        (np.where(np.arange(50) == 7, np.nan, 1.0), "time has no value for row 7"),
        (["yesterday"] * 50, "time must hold numbers or dates"),
    ):
        with pytest.raises(ValueError, match=message):
            rk.AutoDetector().fit(X, time=time)
    with pytest.raises(ValueError, match='time leaves out stretches of time, which takes method="cv"'):
        rk.ConformalDetector(rk.SVDD(), method="loo").fit(X, time=np.arange(50))


def test_a_time_column_leaves_out_stretches_of_time_in_tables():
    rng = np.random.default_rng(10)
    table = pd.DataFrame(slow(400, rng, 0.95), columns=list("abc"))
    timed = table.assign(when=pd.date_range("2026-01-01", periods=400, freq="min"))
    with pytest.warns(UserWarning, match="resemble each other"):
        model = rk.TableDetector(time_column="when").fit(timed)
    assert model.offset_ < rk.TableDetector().fit(table).offset_
    with pytest.warns(UserWarning, match="when holds text and not times"):
        rk.TableDetector(time_column="when").fit(timed.assign(when="noon"))


def test_the_command_keeps_the_rate_of_each_group_and_its_report_says_so(tmp_path, monkeypatch, capsys):
    """What ``score`` flags is what Python's ``predict`` flags; the report has a line for each group and what each view says."""
    pytest.importorskip("typer")
    from refkernel.cli import main

    rng = np.random.default_rng(11)
    X, group = machines(400, rng)
    table = pd.DataFrame(X.round(3), columns=list("abc")).assign(machine=group)
    table.to_csv(tmp_path / "x.csv", index=False)
    later = pd.DataFrame(2 * X.round(3), columns=list("abc")).assign(machine=group)
    later.to_csv(tmp_path / "later.csv", index=False)

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["refkernel", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0
        return capsys.readouterr().out

    said = run("fit", tmp_path / "x.csv", "--out", tmp_path / "m.rk", "--group-column", "machine")
    assert "press" in said
    assert "saw" in said
    run("score", tmp_path / "m.rk", tmp_path / "later.csv", "--out", tmp_path / "s.csv")
    model, scored = rk.load(tmp_path / "m.rk"), pd.read_csv(tmp_path / "s.csv")
    np.testing.assert_array_equal(scored.label, model.predict(later))
    np.testing.assert_allclose(scored.p_value, model.p_values(later), rtol=1e-9)
    run("report", tmp_path / "m.rk", tmp_path / "later.csv", "--out", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "machine = saw" in page
    assert "evidence by view: " in page


def test_the_evidence_of_all_views_averages_to_the_score():
    X = np.random.default_rng(12).normal(size=(300, 4))
    model = rk.AutoDetector().fit(X)
    new = 2 * X[::-1]
    found = model.evidence(new)
    assert found.shape == (300, len(model.results_["view"]))
    weights = np.array([1.0, 1.0, 1.0, 0.5])  # values that were not seen count half
    np.testing.assert_allclose(found @ weights / weights.sum(), -model.score_samples(new), rtol=1e-12, atol=1e-12)
