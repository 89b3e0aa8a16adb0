"""TableEncoder in a pipeline: data frames of text, truth values, dates and missing cells, as scikit-learn's users have them."""

import datetime
import decimal

import numpy as np
import pytest

pytest.importorskip("pandas")

import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import refkernel as rk
from exact import read_csv
from refkernel.tabular.readers import ReadOptions, open_table

SINGLE = 1e-5
"""Graphs of an AutoDetector compute in single precision, as it does itself."""

DETECTORS = [rk.AutoDetector(), rk.SVDD(), rk.OneClassSVM(), rk.ReferenceResidual(random_state=0)]
every_detector = pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: type(detector).__name__)


def visits(n=200, seed=0):
    """Numbers, text, truth values, dates, missing cells, and a constant."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "temperature": rng.normal(80.0, 4.0, n).round(2),
            "count": rng.integers(0, 9, n),
            "machine": rng.choice(["press", "saw", "drill"], n),
            "open": rng.random(n) < 0.6,
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 100 * 24, n), unit="h"),
            "set_point": 100.0,
        }
    )
    frame.loc[rng.random(n) < 0.1, "temperature"] = np.nan
    frame.loc[rng.random(n) < 0.1, "machine"] = None
    return frame


def wrong_cells(frame):
    """Rows of which each has one wrong cell, by the column that is wrong."""
    names = ["temperature", "machine", "set_point", "count"]
    rows = frame.head(len(names)).copy()
    rows[["machine"]] = "saw"
    rows["temperature"] = 80.0
    rows.iloc[0, rows.columns.get_loc("temperature")] = 80_000.0
    rows.iloc[1, rows.columns.get_loc("machine")] = "lathe"
    rows.iloc[2, rows.columns.get_loc("set_point")] = 130.0
    rows["count"] = rows["count"].astype(float)
    rows.iloc[3, rows.columns.get_loc("count")] = np.nan
    return rows, names


@every_detector
def test_a_pipeline_flags_wrong_cells_of_a_mixed_data_frame_and_names_them(detector):
    table = visits()
    model = make_pipeline(rk.TableEncoder(), clone(detector)).fit(table)
    rows, names = wrong_cells(table)
    assert model.predict(rows).tolist() == [-1] * len(names)
    why = rk.explain(model, rows)
    assert [why.names[worst] for worst in why.worst(1)[:, 0]] == names
    assert why.names == tuple(table.columns)
    np.testing.assert_allclose(why.scores, model.score_samples(rows), rtol=1e-9, atol=1e-12)  # sums of values near 1
    changes = rk.counterfactuals(model, rows)
    assert [found[0].name for found in changes.changes if found][:3] == names[:3]


@every_detector
def test_a_saved_pipeline_gives_the_scores_it_gave(detector, tmp_path):
    pytest.importorskip("skops")
    table = visits()
    model = make_pipeline(rk.TableEncoder(), clone(detector)).fit(table)
    rk.save(model, tmp_path / "model.rk")
    rows, _ = wrong_cells(table)
    np.testing.assert_array_equal(rk.load(tmp_path / "model.rk").score_samples(rows), model.score_samples(rows))


@pytest.mark.parametrize("detector", DETECTORS[:3], ids=lambda detector: type(detector).__name__)
def test_the_graph_of_a_pipeline_answers_as_the_pipeline(detector):
    pytest.importorskip("skl2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    table = visits()
    model = make_pipeline(rk.TableEncoder(), clone(detector)).fit(table)
    rows = pd.concat([table.head(20), wrong_cells(table)[0]], ignore_index=True)
    session = onnxruntime.InferenceSession(rk.to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    seconds = (rows["when"] - pd.Timestamp(0)).dt.total_seconds()
    texts = {"machine": rows["machine"].fillna(""), "open": rows["open"].map({True: "true", False: "false"})}
    given = rows.assign(when=seconds, **texts)
    cells = {name: given[[name]].to_numpy(dtype=object if name in texts else np.float64) for name in given}
    label, decision = session.run(["label", "scores"], cells)
    expected = model.decision_function(rows)
    # AutoDetector is in single precision, and its root distances turn the rounding of sines, 1e-8, into 1e-4
    share = 2e-2 if isinstance(detector, rk.AutoDetector) else 1e-7
    np.testing.assert_allclose(decision.ravel(), expected, rtol=0, atol=share * np.ptp(expected))
    np.testing.assert_array_equal(label.ravel(), model.predict(rows))


def test_the_command_scores_a_file_by_a_pipeline_that_was_saved_in_python(tmp_path):
    pytest.importorskip("skops")
    scoring = pytest.importorskip("refkernel.tabular.scoring")
    table = visits()
    model = make_pipeline(rk.TableEncoder(), rk.AutoDetector()).fit(table)
    rk.save(model, tmp_path / "model.rk")
    rows = pd.concat([table.head(20), wrong_cells(table)[0]], ignore_index=True)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    opened = open_table(tmp_path / "rows.csv", ReadOptions())
    scoring.score_file(scoring.load_table_model(tmp_path / "model.rk"), opened, tmp_path / "out.csv")
    scored = read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(scored["score"], model.score_samples(rows), rtol=1e-12)
    assert scored["filled"].tolist() == rows.isna().sum(axis=1).tolist()


def test_p_values_follow_from_the_scores_of_a_pipeline():
    table = visits()
    model = make_pipeline(rk.TableEncoder(), rk.AutoDetector()).fit(table)
    new = visits(50, seed=1)
    expected = model[-1].p_values(model[:-1].transform(new))
    np.testing.assert_array_equal(model[-1].p_values_of(model.score_samples(new)), expected)


def test_columns_of_every_type_that_pandas_has_are_the_same_columns():
    """Numbers, text, truth values and dates in NumPy's, pandas' and Arrow's types, as categories and as Python objects."""
    pytest.importorskip("pyarrow")
    table = visits()
    expected = rk.TableEncoder().fit(table)
    numbers, texts, flags, dates = table["count"], table["machine"], table["open"], table["when"]
    forms = {
        "count": ["Int64", "int64[pyarrow]", lambda: [decimal.Decimal(int(value)) for value in numbers]],
        "machine": ["string", "string[pyarrow]", "category", "object"],
        "open": ["boolean", "bool[pyarrow]", "object", "category", lambda: flags.map({True: "true", False: "false"})],
        "when": [
            lambda: dates.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
            "timestamp[us][pyarrow]",
            lambda: pd.Series([moment.to_pydatetime() for moment in dates], dtype=object),
        ],
        "temperature": ["Float64", "double[pyarrow]"],
    }
    assert texts.isna().any()
    for name, ways in forms.items():
        for way in ways:
            column = table[name].astype(way) if isinstance(way, str) else pd.Series(way(), index=table.index)
            other = table.assign(**{name: column})
            found = rk.TableEncoder().fit(other)
            assert found.kinds_.tolist() == expected.kinds_.tolist(), (name, way)
            np.testing.assert_array_equal(found.transform(other), expected.transform(table), err_msg=f"{name} {way}")
            np.testing.assert_array_equal(expected.transform(other), expected.transform(table), err_msg=f"{name} {way}")


def test_days_are_dates():
    days = pd.DataFrame({"day": [datetime.date(2024, 1, 1) + datetime.timedelta(k) for k in range(30)], "x": np.arange(30.0)})
    assert rk.TableEncoder().fit(days).kinds_.tolist() == ["date", "number"]


def test_kinds_may_be_given_for_some_columns_by_name():
    """A code is a number by its type; as a category, a code that was never seen contradicts training."""
    table = visits().assign(code=np.random.default_rng(0).choice([10115, 20095, 80331], 200))
    encoder = rk.TableEncoder({"code": "category"}).fit(table)
    assert encoder.kinds_[-1] == "category"
    between = table.head(1).assign(code=50000)
    assert encoder.read(between).violations[0, -1]
    assert not rk.TableEncoder().fit(table).read(between).violations[0, -1]
    with pytest.raises(ValueError, match="kinds names columns that X does not have: zip"):
        rk.TableEncoder({"zip": "category"}).fit(table)
    with pytest.raises(ValueError, match="kinds holds 'text'; it must be one of number, category, date"):
        rk.TableEncoder({"code": "text"}).fit(table)


def test_known_outliers_do_not_count_as_normal():
    table = visits()
    rows, _ = wrong_cells(table)
    both = pd.concat([table, rows], ignore_index=True)
    y = np.r_[np.ones(len(table)), -np.ones(len(rows))]
    found, expected = (encoder.transform(rows) for encoder in (rk.TableEncoder().fit(both, y), rk.TableEncoder().fit(table)))
    np.testing.assert_allclose(found, expected, rtol=1e-9)  # sums over the rows in another order of memory


def test_encoded_rows_come_as_a_frame_where_that_is_asked_for():
    encoder = rk.TableEncoder().set_output(transform="pandas").fit(visits())
    found = encoder.transform(visits().set_index(np.arange(200) + 7))
    assert found.columns.tolist() == encoder.get_feature_names_out().tolist()
    assert found.index.tolist() == list(range(7, 207))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda frame: frame.to_numpy(), TypeError, "pass a data frame"),
        (lambda frame: frame.rename(columns={"open": 3}), TypeError, "X.columns.astype"),
        (lambda frame: frame.rename(columns={"open": "when"}), ValueError, "more than one column of the name when"),
        (lambda frame: frame.assign(gone=np.nan, lost=None), ValueError, "No normal row has a value in gone"),
        (lambda frame: frame.assign(count=np.inf), ValueError, "Infinite values in count"),
        (lambda frame: frame.assign(mixed=[1, "a"] * 100), TypeError, r"mixed \(object\)"),
        (lambda frame: frame.assign(lag=pd.to_timedelta(1, unit="h"), z=1j), TypeError, r"lag \(timedelta64\[.*\]\), z \(complex128\)"),
    ],
)
def test_columns_that_cannot_be_encoded_are_named_with_a_way_out(change, error, message):
    with pytest.raises(error, match=message):
        rk.TableEncoder().fit(change(visits()))


def test_texts_that_name_the_rows_or_are_dates_are_warned_about():
    table = visits().assign(id=[f"visit {number}" for number in range(200)])
    with pytest.warns(UserWarning, match=r"Most cells of id are unlike all others.*pandas\.to_datetime"):
        rk.TableEncoder().fit(table)


def test_a_table_that_has_changed_is_refused_by_its_column():
    encoder = rk.TableEncoder().fit(visits())
    with pytest.raises(ValueError, match=r"Column count must hold numbers, as in training: .*many"):
        encoder.transform(visits().assign(count="many"))
    with pytest.raises(ValueError, match="X lacks 1 of the 6 columns of fit: open"):
        encoder.transform(visits().drop(columns="open"))


OTHERS = [*DETECTORS, rk.ESVDD(), rk.TargetScaler(), rk.ReferenceMap()]


@pytest.mark.parametrize("estimator", OTHERS, ids=lambda estimator: type(estimator).__name__)
def test_text_and_missing_cells_without_an_encoder_are_refused_by_their_columns(estimator):
    table = visits()
    with pytest.raises(ValueError, match=r"machine \(.*\), when \(datetime64.*rk\.TableDetector takes text") as found:
        clone(estimator).fit(table)
    assert "temperature" not in str(found.value)
    numbers = table[["temperature", "count"]]
    missing = int(numbers["temperature"].isna().sum())
    with pytest.raises(ValueError, match=rf"NaN: temperature \({missing} of 200 rows\)\. rk\.TableDetector"):
        clone(estimator).fit(numbers)
    with pytest.raises(ValueError, match=rf"NaN: column 0 \({missing} of 200 rows\)\. rk\.TableDetector"):
        clone(estimator).fit(numbers.to_numpy())
    with pytest.raises(ValueError, match=r"text in column 1\. rk\.TableDetector"):
        clone(estimator).fit([[1.0, "a"], [2.0, "b"]])


def test_new_rows_with_other_columns_get_the_message_about_names():
    """Not one about text in columns that the detector never saw."""
    numbers = visits()[["count", "set_point"]]
    with pytest.raises(ValueError, match="feature names should match"):
        rk.SVDD(rk.RBF(1.0)).fit(numbers).predict(visits())


# Contradictions: in scores, graphs and explanations


def graph_of(model):
    """The function from a table to labels and decisions by ONNX Runtime."""
    pytest.importorskip("skl2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(rk.to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])

    def run(rows):
        cells = {name: rows[[name]].fillna("").to_numpy(object) if rows[name].dtype == object else rows[[name]].to_numpy() for name in rows}
        label, decision = session.run(["label", "scores"], cells)
        return label.ravel(), decision.ravel()

    return run


def contradictions():
    """(training table, ordinary row, pairs of a cell that does not contradict training and one that barely does, by column)."""
    rng = np.random.default_rng(0)
    n = 150
    levels = np.array(["a", "b"], dtype=object)
    table = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "size": rng.uniform(10.0, 12.0, n),
            "level": levels[rng.integers(0, 2, n)],
            "name": np.array([f"n{number}" for number in rng.integers(0, 120, n)], dtype=object),
            "set_point": 100.0,
        }
    )
    low, high = rk.TableEncoder().fit(table).parts_[0].limits_
    usual = pd.DataFrame(
        {"x": [0.0], "size": [11.0], "level": np.array(["a"], dtype=object), "name": [table["name"][0]], "set_point": [100.0]}
    )
    pairs = {
        "x": [(low[0] * (1 - 1e-9), low[0] * (1 + 1e-9)), (high[0] * (1 - 1e-9), high[0] * (1 + 1e-9))],
        "size": [(high[1] * (1 - 1e-9), high[1] * (1 + 1e-9)), (low[1] * (1 + 1e-9), low[1] * (1 - 1e-9))],
        "set_point": [(100.0 + 0.9e-4, 100.0 + 1.1e-4), (100.0, 99.0)],
        "level": [("b", "c"), ("a", "")],
    }
    return table, usual, pairs


WIDE = [rk.AutoDetector(), rk.SVDD(rk.RBF(10.0)), rk.OneClassSVM(rk.RBF(10.0))]
"""Kernels that reach beyond the limits."""


@pytest.mark.parametrize("detector", WIDE, ids=lambda detector: type(detector).__name__)
def test_cells_on_both_sides_of_a_limit_are_told_apart_by_scores_graphs_and_explanations(detector):
    """The two cells differ by a billionth, or by being known: what changes the score is the contradiction, which is its column's."""
    table, usual, pairs = contradictions()
    model = make_pipeline(rk.TableEncoder(), clone(detector)).fit(table)
    graph = graph_of(model)
    for name, cells in pairs.items():
        for inside, outside in cells:
            rows = pd.concat([usual.assign(**{name: [cell or None]}) for cell in (inside, outside)], ignore_index=True)
            rows["level"] = rows["level"].astype(object)
            decision = model.decision_function(rows)
            assert model[0].read(rows).violations[:, list(table).index(name)].tolist() == [False, True]
            assert decision[1] < min(decision[0], 0.0) - 1e-6 * abs(decision[1])
            label, found = graph(rows)
            np.testing.assert_allclose(found, decision, rtol=0, atol=SINGLE * np.abs(decision).max())
            assert label[1] == -1
            why = rk.explain(model, rows)
            assert why.names[why.worst(1)[1, 0]] == name
            np.testing.assert_allclose(why.scores, model.score_samples(rows), rtol=1e-9, atol=1e-12)  # sums of values near 1
            others = [j for j, other in enumerate(why.names) if other != name]
            assert (why.values[0, others] - why.values[1, others]).max() < why.values[0].sum() - why.values[1].sum()


def test_names_that_are_likely_to_be_new_contradict_nothing_in_the_graph_either():
    table, usual, _ = contradictions()
    model = make_pipeline(rk.TableEncoder(), rk.AutoDetector()).fit(table)
    rows = usual.assign(name=np.array(["never seen"], dtype=object))
    assert not model[0].read(rows).violations.any()
    np.testing.assert_allclose(graph_of(model)(rows)[1], model.decision_function(rows), rtol=SINGLE)


@pytest.mark.parametrize("few", [False, True])
def test_more_missing_cells_than_training_had_are_counted_in_the_graph_as_in_the_scores(few):
    """Two columns lack cells, in training never in one row."""
    table, usual, _ = contradictions()
    table.loc[::7, "x"], table.loc[1::7, "size"] = np.nan, np.nan
    model = make_pipeline(rk.TableEncoder(), rk.SVDD(rk.RBF(10.0))).fit(table)
    rows = usual.assign(x=np.nan) if few else usual.assign(x=np.nan, size=np.nan)
    assert model[0].read(rows).violations.sum() == (0 if few else 2)
    np.testing.assert_allclose(graph_of(model)(rows)[1], model.decision_function(rows), rtol=0, atol=1e-9)
    why = rk.explain(model, rows)
    np.testing.assert_allclose(why.scores, model.score_samples(rows), rtol=1e-9)
    assert few or {why.names[worst] for worst in why.worst(2)[0]} == {"x", "size"}


def test_the_bound_on_contradictions_binds_in_scores_graphs_and_explanations():
    """A training row farther away than any contradiction is what a contradiction may not be more normal than: its score begins there."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(200, 10)), np.full(200, 7.0)])
    X[0, :10] = 50.0
    detector = rk.AutoDetector().fit(X)
    row = np.array([[0.0] * 10 + [7.5]])
    lowest = np.nextafter(detector.calibration_[0], -np.inf)
    score = detector.score_samples(row)[0]
    assert lowest < score - lowest  # its own score would be above the bound
    assert score <= lowest
    why = rk.explain(detector, row)
    np.testing.assert_allclose(why.scores, score, rtol=1e-12)
    assert why.worst(1)[0, 0] == 10
    pytest.importorskip("skl2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    graph = rk.to_onnx(detector, row).SerializeToString()
    session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    label, decision = session.run(["label", "scores"], {session.get_inputs()[0].name: row})
    np.testing.assert_allclose(decision.ravel(), score - detector.offset_, rtol=SINGLE)
    assert label.ravel()[0] == -1
