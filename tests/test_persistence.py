"""Model files: the same model comes back, whole, from any file that is ours; every other file is refused, and none runs code."""

import ast
import contextlib
import hashlib
import io
import json
import os
import pickle
import re
import sys
import time
import tracemalloc
import zipfile
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import skops.io
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import refkernel as rk
from refkernel.export import files as persistence
from refkernel.export import sealed
from refkernel.export.files import ModelFileError, load, read_about, save
from refkernel.export.known import INTERNAL_TYPES
from refkernel.export.schema import nodes
from refkernel.kernels import RBF, Laplacian, Linear, Pairwise, Polynomial, Sigmoid
from saved_models import MODELS, answers, fitted, new_rows, public_estimators

pytestmark = pytest.mark.filterwarnings("ignore:The kernel is indefinite", "ignore:The one-class SVM's optimum is w = 0")

KERNELS = [
    RBF(1.0),
    RBF(sigma=2.0),
    Laplacian(),
    Laplacian(exponent=0.5),
    Linear(),
    Polynomial(2),
    Sigmoid(),
    Pairwise("cosine"),
    Pairwise("rbf", {"gamma": 0.5}),
    "rbf",
]
REFERENCES = ["training", "subset", "normal", "case5", "case7", rk.references.Subset(0.5) + rk.references.Normal(3)]

OUTLIERS = 8
LABELS = np.r_[np.ones(22), -np.ones(OUTLIERS)]


@pytest.fixture
def saved(samples, tmp_path):
    """The file of a small model."""
    return save(rk.SVDD(rk.ReferenceKernel(references="case5", random_state=0)).fit(samples(30, 3, 0), LABELS), tmp_path / "model.rk")


def assert_same(model, X, path, trusted=(), **scored):
    """A round trip through the file keeps every bit of the decisions and labels, and the type."""
    back = load(save(model, path), trusted=trusted)
    assert type(back) is type(model)
    decision = model.decision_function(X, **scored)
    assert np.ptp(decision) > 0
    np.testing.assert_array_equal(back.decision_function(X, **scored), decision)
    np.testing.assert_array_equal(back.predict(X, **scored), model.predict(X, **scored))
    address = re.compile(" at 0x[0-9A-Fa-f]+")
    assert address.sub("", repr(back)) == address.sub("", repr(model))
    return back


def entries_of(path):
    with zipfile.ZipFile(path) as archive:
        return {entry: archive.read(entry) for entry in archive.namelist()}


def write_sealed(path, entries, compression=zipfile.ZIP_DEFLATED):
    """What a forger does: any contents, under a right checksum. The format is written out here a second time, as its specification."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression, compresslevel=1) as archive:
        for entry, content in entries.items():
            archive.writestr(entry, content)
        archive.comment = b"refkernel sha256 " + b"0" * 64
    body = buffer.getvalue()[:-64]
    path.write_bytes(body + hashlib.sha256(body).hexdigest().encode())
    return path


def forge(path, change):
    """The file with ``change`` applied to its schema (a dict, in place), under a right checksum."""
    entries = entries_of(path)
    schema = json.loads(entries["schema.json"])
    change(schema)
    return write_sealed(path, entries | {"schema.json": json.dumps(schema)})


def attributes(schema):
    """The nodes of the model's attributes by name."""
    return schema["content"]["content"]


# What comes back


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("estimator", [rk.SVDD, rk.OneClassSVM])
def test_every_base_kernel_comes_back_bit_for_bit(estimator, kernel, samples, tmp_path):
    """Decisions on new samples are equal, not close."""
    assert_same(estimator(kernel, nu=0.2).fit(samples(40, 3, 0)), samples(25, 3, 1), tmp_path / "model.rk")


@pytest.mark.parametrize("references", REFERENCES, ids=repr)
@pytest.mark.parametrize("estimator", [rk.SVDD, rk.OneClassSVM])
def test_every_reference_kernel_comes_back_bit_for_bit(estimator, references, samples, tmp_path):
    """Whatever the references were drawn from, the drawn ones are kept."""
    model = estimator(rk.ReferenceKernel(references=references, center=False, random_state=0)).fit(samples(30, 3, 0), LABELS)
    back = assert_same(model, samples(25, 3, 1), tmp_path / "model.rk")
    np.testing.assert_array_equal(back.kernel_.references_, model.kernel_.references_)


@pytest.mark.parametrize(
    "reference_map", [rk.ReferenceMap(references="case2", random_state=0), rk.NPT(Laplacian()), rk.NPT(center=False)], ids=repr
)
def test_pipelines_of_scaler_map_and_classifier_come_back_bit_for_bit(reference_map, samples, tmp_path):
    """TargetScaler, ReferenceMap and NPT alone and in a pipeline; the map's own features too."""
    X, X_new = samples(30, 3, 0, offset=5.0), samples(25, 3, 1, offset=5.0)
    model = make_pipeline(rk.TargetScaler(), reference_map, rk.SVDD("linear")).fit(X, LABELS)
    back = assert_same(model, X_new, tmp_path / "model.rk")
    np.testing.assert_array_equal(back[:-1].transform(X_new), model[:-1].transform(X_new))
    map_alone = load(save(model[1], tmp_path / "map.rk"))
    np.testing.assert_array_equal(map_alone.transform(X_new), model[1].transform(X_new))


@pytest.mark.parametrize("scoring", ["gmean", "roc_auc", "tpr_at_tnr", "balanced_accuracy"])
def test_a_search_comes_back_with_its_table(scoring, samples, tmp_path):
    """Decisions of the best estimator, the results (masked where a grid lacks a name) and a score with the stored scorer."""
    X = samples(30, 3, 0)
    grid = [{"kernel": [RBF(1.0), Laplacian()], "nu": [0.1, 0.3]}, {"kernel": ["linear"]}]
    search = rk.OneClassGridSearch(rk.SVDD(), grid, scoring=scoring, cv=StratifiedKFold(2), random_state=np.random.RandomState(3)).fit(
        X, LABELS
    )
    back = assert_same(search, X, tmp_path / "model.rk")
    assert back.cv_results_.keys() == search.cv_results_.keys()
    np.testing.assert_array_equal(back.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"])
    np.testing.assert_array_equal(back.cv_results_["param_nu"].mask, search.cv_results_["param_nu"].mask)
    assert back.score(X, LABELS) == search.score(X, LABELS)
    assert back.random_state.randint(1 << 30) == search.random_state.randint(1 << 30)
    assert read_about(tmp_path / "model.rk")["other_types"] == []


def test_a_search_of_scikit_learn_comes_back(samples, tmp_path):
    """GridSearchCV over our estimators, with a scorer by name."""
    X = samples(30, 3, 0)
    search = GridSearchCV(rk.SVDD(), {"nu": [0.1, 0.3]}, scoring="balanced_accuracy", cv=StratifiedKFold(2)).fit(X, LABELS)
    back = assert_same(search, X, tmp_path / "model.rk")
    assert back.score(X, LABELS) == search.score(X, LABELS)


@pytest.mark.parametrize("kernel", [RBF(1.0), Linear(), rk.ReferenceKernel(references="case3", random_state=0)], ids=repr)
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_models_of_sparse_samples_come_back_bit_for_bit(kind, kernel, samples, tmp_path):
    """Sparse support vectors and references stay sparse, and of their kind."""
    X = samples(40, 6, 0)
    X[np.abs(X) < 0.8] = 0.0
    model = rk.SVDD(kernel).fit(kind(X))
    back = assert_same(model, kind(X[::2]), tmp_path / "model.rk")
    assert type(back.support_vectors_) is type(model.support_vectors_)


def test_a_data_frame_pipeline_comes_back_with_its_names_and_categories(tmp_path):
    """ColumnTransformer, imputation and one-hot encoding: names, categories and the answer to unknown values are kept."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"length": rng.normal(size=40), "width": rng.normal(size=40), "colour": rng.choice(["red", "grün", "None"], 40)})
    frame.loc[3, "length"] = np.nan
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), make_column_selector(dtype_include="number")),
            ("colour", OneHotEncoder(handle_unknown="ignore"), ["colour"]),
        ]
    )
    model = make_pipeline(columns, rk.TargetScaler(), rk.SVDD()).fit(frame)
    new = pd.DataFrame({"length": [0.1, np.nan, 4.0], "width": [0.0, 1.0, -3.0], "colour": ["red", "blue", "grün"]})
    back = assert_same(model, new, tmp_path / "model.rk")
    assert list(back.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="colour"):
        back.predict(new.drop(columns="colour"))


def test_weighted_and_precomputed_models_come_back_bit_for_bit(samples, tmp_path):
    """Sample weights shape the model only; a precomputed kernel keeps its support."""
    X, X_new = samples(30, 3, 0), samples(9, 3, 1)
    weight = np.random.default_rng(0).uniform(0, 2, size=30)
    assert_same(rk.SVDD(nu=0.3).fit(X, sample_weight=weight), X_new, tmp_path / "weighted.rk")
    k = RBF(1.0).fit(X)
    model = rk.SVDD("precomputed").fit(k(X))
    assert_same(model, k(X_new, X), tmp_path / "precomputed.rk", diag=k.diag(X_new))


def test_all_known_types_are_loaded_and_name_nothing_foreign():
    """Every name leads to an object that is loaded already and belongs to one of four packages: a file cannot cause an import."""
    for name in persistence.known_types():
        module, _, attribute = name.rpartition(".")
        found = getattr(sys.modules[module], attribute, None)
        if found is None:
            assert name in INTERNAL_TYPES  # not in every version of scikit-learn
        else:
            assert getattr(found, "__module__", module).partition(".")[0] in ("refkernel", "sklearn", "numpy", "scipy")


def test_every_public_estimator_is_known_and_has_a_model_here():
    """Classes of this package always load; a new public name needs a line in ``saved_models``."""
    assert {name.partition(",")[0] for name in MODELS} >= public_estimators()
    for room in (rk, rk.kernels, rk.references, rk.pseudo_outliers):
        for name in room.__all__:
            value = getattr(room, name)
            if isinstance(value, type) and issubclass(value, BaseEstimator):
                assert f"{value.__module__}.{value.__qualname__}" in persistence.known_types()


@pytest.mark.parametrize("name", MODELS)
def test_everything_that_can_be_saved_can_be_loaded(name, tmp_path):
    """Every public estimator, fitted with and without labels."""
    model = fitted(name)
    path = save(model, tmp_path / "model.rk")
    assert read_about(path)["other_types"] == []
    back, X = load(path), new_rows(model)
    assert repr(back).partition("RandomState")[0] == repr(model).partition("RandomState")[0]
    np.testing.assert_array_equal(answers(back, X), answers(model, X))


# What the file says of itself


def test_metadata_tell_what_the_model_is_and_what_made_it(samples, tmp_path):
    """Format, versions, UTC time, class, features and the user's own dict, without building the model."""
    frame = pd.DataFrame(samples(30, 3, 0), columns=["a", "b", "ü"])
    about = {"source": "sensor 7 ±", "rows": 30, "share": 0.25, "parts": [1, None, {"deep": True}]}
    metadata = read_about(save(rk.SVDD().fit(frame), tmp_path / "model.rk", about=about))
    assert metadata["format"] == 1
    assert metadata["package"] == "refkernel"
    assert metadata["model"] == "refkernel.classifiers.svdd.SVDD"
    assert (metadata["n_features_in"], metadata["feature_names_in"]) == (3, ["a", "b", "ü"])
    assert metadata["about"] == about
    assert metadata["versions"].keys() >= {"python", "numpy", "scipy", "scikit-learn", "numba", "refkernel"}
    assert metadata["versions"]["numpy"] == np.__version__
    assert metadata["versions"]["refkernel"] == rk.__version__
    age = datetime.now(UTC) - datetime.fromisoformat(metadata["created"])
    assert timedelta(seconds=-1) <= age < timedelta(minutes=5)


def test_metadata_of_a_model_without_feature_names_say_none(saved):
    """No names is None, not an empty list."""
    assert read_about(saved)["feature_names_in"] is None
    assert read_about(saved)["n_features_in"] == 3
    assert read_about(saved)["about"] == {}


@pytest.mark.parametrize("about", [{1: "a"}, {"x": float("nan")}, {"x": (1, 2)}, {"x": np.arange(2)}, ["x"], "x"], ids=repr)
def test_about_that_json_would_change_is_refused(about, samples, tmp_path):
    """What is read is what was given, or nothing is written."""
    model = rk.SVDD().fit(samples(20, 2, 0))
    with pytest.raises(ValueError, match="not plain JSON"):
        save(model, tmp_path / "model.rk", about=about)
    assert list(tmp_path.iterdir()) == []


def test_the_file_is_also_a_plain_skops_file(saved, samples):
    """Without this package's checks, skops itself reads it: no private format."""
    model = skops.io.load(saved, trusted=skops.io.get_untrusted_types(file=saved))
    np.testing.assert_array_equal(model.decision_function(samples(9, 3, 1)), load(saved).decision_function(samples(9, 3, 1)))


# Whole or not at all


def test_saving_replaces_a_file_and_leaves_nothing_else(saved, samples):
    """The second save wins; the folder holds one file."""
    path = save(rk.OneClassSVM().fit(samples(20, 3, 5)), saved)
    assert isinstance(load(path), rk.OneClassSVM)
    assert list(path.parent.iterdir()) == [path]


def test_a_failing_save_keeps_the_old_file_and_leaves_nothing_else(saved, samples, monkeypatch):
    """The disk fails at the last moment: the old model is still there, whole."""
    before = saved.read_bytes()

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)  # a full disk cannot be had otherwise
    with pytest.raises(OSError, match=r"was not written: No space left.*model\.rk"):
        save(rk.OneClassSVM().fit(samples(20, 3, 5)), saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_path_that_cannot_be_written_is_named_and_nothing_is_left(samples, tmp_path):
    """A folder that does not exist, a folder in the file's place, a file in the folder's place, a name that is too long."""
    model = rk.SVDD().fit(samples(20, 2, 0))
    with pytest.raises(FileNotFoundError, match=r"was not written.*missing.model\.rk"):
        save(model, tmp_path / "missing" / "model.rk")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for path in [tmp_path / "folder", tmp_path / "file" / "model.rk", tmp_path / "folder" / ("x" * 300)]:
        with pytest.raises(OSError, match="was not written"):
            save(model, path)
    assert {p.name for p in tmp_path.rglob("*")} == {"folder", "file"}


def test_an_unfitted_model_is_not_saved(tmp_path):
    """There is nothing to keep yet."""
    with pytest.raises(NotFittedError):
        save(rk.SVDD(), tmp_path / "model.rk")
    assert list(tmp_path.iterdir()) == []


# Code of the user


@pytest.fixture
def user_module(tmp_path, monkeypatch):
    """A module of a user, with a kernel class, a kernel function and a function in its place."""
    (tmp_path / "users_kernels.py").write_text(
        "import numpy as np\n"
        "from refkernel.kernels import Kernel\n"
        "class Cubic(Kernel):\n"
        "    def __call__(self, X, Z=None):\n"
        "        return (1 + X @ (X if Z is None else Z).T) ** 3\n"
        "def cubic(X, Z):\n"
        "    return (1 + X @ Z.T) ** 3\n"
        "def hidden():\n"
        "    def cubic(X, Z):\n"
        "        return X @ Z.T\n"
        "    return cubic\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import users_kernels

    yield users_kernels
    del sys.modules["users_kernels"]


@pytest.mark.parametrize("name", ["Cubic", "cubic"])
def test_a_users_kernel_is_loaded_only_if_its_name_is_trusted(name, user_module, samples, tmp_path):
    """Refused by name, with the call that loads it; the metadata list it; with the name it comes back bit for bit."""
    kernel = user_module.Cubic() if name == "Cubic" else user_module.cubic
    X = samples(20, 2, 0)
    path = save(rk.SVDD(kernel).fit(X), tmp_path / "model.rk")
    assert read_about(path)["other_types"] == [f"users_kernels.{name}"]
    with pytest.raises(ModelFileError, match=rf"holds users_kernels\.{name},.*may be malicious.*trusted=\['users_kernels\.{name}'\]"):
        load(path)
    assert_same(rk.SVDD(kernel).fit(X), X, path, trusted=[f"users_kernels.{name}"])


@pytest.mark.parametrize("kind", ["lambda", "local with a namesake", "of __main__"])
def test_a_kernel_that_its_name_does_not_find_is_refused_when_saved(kind, user_module, samples, tmp_path, monkeypatch):
    """The file would hold the name only; better to hear it now than at load time. The way out is said."""
    kernel = {"lambda": lambda X, Z: X @ Z.T, "local with a namesake": user_module.hidden(), "of __main__": user_module.cubic}[kind]
    if kind == "of __main__":
        monkeypatch.setattr(kernel, "__module__", "__main__")
    model = rk.SVDD(kernel).fit(samples(20, 2, 0))
    with pytest.raises(ModelFileError, match=r"stores only its name.*top level of a module.*subclass of refkernel.kernels.Kernel"):
        save(model, tmp_path / "model.rk")
    assert not (tmp_path / "model.rk").exists()


def test_what_skops_cannot_store_is_refused_when_saved(samples, tmp_path):
    """A generator has no contents to keep."""
    X = samples(30, 3, 0)
    model = rk.SVDD().fit(X)
    model.notes = (row for row in X)
    with pytest.raises(ModelFileError, match=r"SVDD holds something that cannot be saved: .*generator"):
        save(model, tmp_path / "model.rk")


@pytest.mark.parametrize("trusted", ["os.system", [os.system], [1]], ids=repr)
def test_trusted_takes_a_list_of_names_only(trusted, saved):
    """A string alone would be taken for a list of letters."""
    with pytest.raises(TypeError, match="must be a list of full names"):
        load(saved, trusted=trusted)


# Files that are no model files, or no longer


both_readers = pytest.mark.parametrize("read", [load, read_about])


@both_readers
def test_paths_without_a_model_file_are_refused_by_name(read, tmp_path):
    """Nothing there, a folder, an empty file, text, another archive, a skops file of another program."""
    files = {
        "empty": (b"", "is not a zip archive"),
        "text": (b"a,b\n1,2\n", "is not a zip archive"),
        "skops": (
            skops.io.dumps(StandardScaler().fit([[1.0], [2.0]])),
            "a skops file, but was not written by refkernel.save.*skops.io.load",
        ),
    }
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("readme.txt", "hello")
    files["archive"] = (other.getvalue(), "not a model file: it has no refkernel.json")
    with pytest.raises(ModelFileError, match=r"nothing\.rk does not exist"):
        read(tmp_path / "nothing.rk")
    with pytest.raises(ModelFileError, match="is not a file"):
        read(tmp_path)
    for name, (content, message) in files.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ModelFileError, match=f"{name} .*{message}"):
            read(tmp_path / name)


@both_readers
def test_a_changed_byte_anywhere_is_noticed(read, saved):
    """In headers, arrays, schema, metadata, comment: every kind of byte is among some hundred random ones and all of the two ends."""
    data = saved.read_bytes()
    middle = np.random.default_rng(0).choice(len(data), 200, replace=False)
    for i in [*range(60), *middle, *range(len(data) - 200, len(data))]:
        changed = bytearray(data)
        changed[i] ^= 1 << (int(i) % 8)
        saved.write_bytes(changed)
        with pytest.raises(ModelFileError, match=r"model\.rk"):
            read(saved)
    saved.write_bytes(data)
    read(saved)


@both_readers
def test_a_file_that_is_cut_short_or_longer_is_noticed(read, saved):
    """At any length."""
    data = saved.read_bytes()
    for length in [1, 4, 100, len(data) // 2, len(data) - 65, len(data) - 1]:
        saved.write_bytes(data[:length])
        with pytest.raises(ModelFileError, match=r"damaged|is not a zip archive"):
            read(saved)
    saved.write_bytes(data + b"0")
    with pytest.raises(ModelFileError, match="damaged"):
        read(saved)


@both_readers
def test_a_newer_format_asks_for_an_upgrade(read, saved):
    """It says what made the file, and what can be read."""
    entries = entries_of(saved)
    metadata = json.loads(entries["refkernel.json"])
    metadata |= {"format": 2, "versions": {"refkernel": "9.1"}}
    write_sealed(saved, entries | {"refkernel.json": json.dumps(metadata)})
    with pytest.raises(ModelFileError, match=r"saved by refkernel 9.1 in format 2; this version reads formats up to 1. Upgrade"):
        read(saved)


@pytest.mark.parametrize("change", ["class", "attribute"])
def test_a_model_of_a_newer_version_asks_for_an_upgrade(change, saved):
    """Not taken for malicious: a class that this version lacks, or attributes that it stored otherwise."""
    entries = entries_of(saved)
    entries["refkernel.json"] = entries["refkernel.json"].replace(rk.__version__.encode(), b"9.1")
    write_sealed(saved, entries)
    assert load(saved) is not None  # what is still the same loads

    def differ(schema):
        if change == "class":
            schema["__class__"] = "BetterSVDD"
        else:
            attributes(schema).pop("offset_")

    forge(saved, differ)
    with pytest.raises(ModelFileError, match=r"saved by refkernel 9\.1, which is newer than this one.*Upgrade refkernel") as caught:
        load(saved)
    assert "malicious" not in str(caught.value)


def test_another_version_of_scikit_learn_is_said_and_no_error(saved, quiet):
    """The same version is silent."""
    quiet(load, saved)
    entries = entries_of(saved)
    entries["refkernel.json"] = entries["refkernel.json"].replace(f'"{sklearn.__version__}"'.encode(), b'"1.5.0"')
    write_sealed(saved, entries)
    with pytest.warns(UserWarning, match=rf"saved with scikit-learn 1\.5\.0, but {sklearn.__version__} is installed") as record:
        model = load(saved)
    assert record[0].filename == __file__
    assert isinstance(model, rk.SVDD)


@pytest.mark.parametrize(
    "metadata", [b"", b"[]", b"{}", b'{"format": "1", "versions": {}}', b'{"format": 1, "versions": 7}', b"\xff", b"[" * 100_000], ids=len
)
@both_readers
def test_forged_metadata_are_an_error_and_no_crash(read, metadata, saved):
    """Under a right checksum, too."""
    write_sealed(saved, entries_of(saved) | {"refkernel.json": metadata})
    with pytest.raises(ModelFileError, match="damaged or forged"):
        read(saved)


@both_readers
def test_a_right_checksum_of_no_archive_is_an_error_and_no_crash(read, saved):
    """Next to nothing, a file without its middle, a directory of zeros."""
    data = saved.read_bytes()[:-64]
    for body in [b"PK" + data[-17:], data[:1000] + data[-17:], data[:-60] + bytes(20) + data[-40:]]:
        saved.write_bytes(body + hashlib.sha256(body).hexdigest().encode())
        with pytest.raises(ModelFileError, match="damaged or forged"):
            read(saved)


def test_a_forged_schema_is_refused_or_loaded_and_never_crashes(samples, tmp_path):
    """Any one value of the schema replaced by any other: a model, or a ModelFileError that names the file."""
    path = save(rk.SVDD().fit(samples(8, 2, 0)), tmp_path / "model.rk")
    entries, rng, outcomes = entries_of(path), np.random.default_rng(0), set()
    values = ["None", "0", "-1", '""', '"x"', "[]", "{}", "[[]]", "1e308", "True"]
    for _ in range(120):
        schema = json.loads(entries["schema.json"])
        places = [(node, key) for node in nodes(schema) for key in node]
        node, key = places[rng.integers(len(places))]
        others = [repr(other[k]) for other, k in places] + values * 10
        node[key] = ast.literal_eval(others[rng.integers(len(others))])
        write_sealed(path, entries | {"schema.json": json.dumps(schema)})
        try:
            outcomes.add(type(load(path)))
        except ModelFileError as error:
            assert "model.rk" in str(error)  # noqa: PT017 (both outcomes are right)
            outcomes.add(ModelFileError)
    assert outcomes >= {ModelFileError, rk.SVDD}


# Files that would fill the memory


def bomb(entries_of_model, name, size):
    """Entries that are small in the file and large in memory, each in its own way."""
    zeros = bytes(size)
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data.npy", zeros)
    schema = json.loads(entries_of_model["schema.json"])
    if name == "array":
        return {"zeros.npy": zeros}
    if name == "metadata":
        return {"refkernel.json": zeros}
    if name == "schema":
        return {"schema.json": b" " * len(zeros) + entries_of_model["schema.json"]}
    node = {"__class__": "ndarray", "__module__": "numpy", "__loader__": "NdArrayNode", "type": "numpy", "file": "a.npy"}
    if name == "sparse":  # an archive in the archive
        attributes(schema)["a"] = {**node, "__class__": "csr_matrix", "__loader__": "SparseMatrixNode", "type": "scipy", "__id__": 1}
        return {"a.npy": inner.getvalue(), "schema.json": json.dumps(schema)}
    many = [{**node, "__id__": i + 1} for i in range(64)]  # the same entry 64 times
    attributes(schema)["a"] = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode", "content": many}
    return {"a.npy": zeros[::32], "schema.json": json.dumps(schema)}


@pytest.mark.parametrize("name", ["array", "metadata", "schema", "sparse", "repeated"])
def test_contents_that_are_far_larger_than_the_file_are_refused_before_they_are_unpacked(name, saved, monkeypatch):
    """The message names the size and the way to allow it; the memory stays small."""
    monkeypatch.setattr(sealed, "SMALL_BYTES", 1 << 20)  # smaller bombs, quicker tests
    entries = entries_of(saved)
    write_sealed(saved, entries | bomb(entries, name, 16 << 20))
    assert saved.stat().st_size < 1 << 17
    tracemalloc.start()
    tracemalloc.reset_peak()
    with pytest.raises(ModelFileError, match=r"would take [\d,]+ bytes; at most [\d,]+ are expected.*pass max_bytes=\d+"):
        load(saved)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20  # 16 MB and more if it were unpacked


def test_sizes_are_limited_as_documented(saved, tmp_path):
    """64 MB for small files, and 2 GB for any."""
    entries = entries_of(saved)
    write_sealed(saved, entries | bomb(entries, "array", 66 << 20))
    with pytest.raises(ModelFileError, match="at most 67,108,864 are expected"):
        load(saved)
    large = tmp_path / "large.rk"
    with large.open("wb") as file:
        file.truncate((2 << 30) + 1)  # a sparse file: no disk is used
    with pytest.raises(ModelFileError, match="would take 2,147,483,649 bytes; at most 2,147,483,648"):
        load(large)


def test_max_bytes_is_a_limit_that_the_user_sets(saved, monkeypatch):
    """Lower than the contents it refuses them, higher it allows what the default refuses; it must be a number."""
    with pytest.raises(ModelFileError, match="at most 1,000 are expected"):
        load(saved, max_bytes=1000)
    assert isinstance(load(saved, max_bytes=200 << 20), rk.SVDD)
    monkeypatch.setattr(sealed, "SMALL_BYTES", 1 << 20)
    entries = entries_of(saved)
    write_sealed(saved, entries | bomb(entries, "array", 16 << 20))
    with pytest.raises(ModelFileError, match="max_bytes"):
        load(saved)
    assert isinstance(load(saved, max_bytes=20 << 20), rk.SVDD)
    with pytest.raises(ValueError, match="max_bytes=0 must be a positive number"):
        load(saved, max_bytes=0)


def test_methods_of_compression_that_cannot_be_bounded_are_refused(saved):
    """bz2 and lzma unpack a block at a time, however large."""
    write_sealed(saved, entries_of(saved), zipfile.ZIP_LZMA)
    with pytest.raises(ModelFileError, match=r"compressed in a way that refkernel.save never uses"):
        load(saved)


def test_objects_that_hold_each_other_over_and_over_are_refused_at_once(saved):
    """Forty lists that hold the one before twice would be walked 2^40 times."""

    def change(schema):
        plain = {"__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}
        node = {**plain, "__id__": 1, "content": []}
        for i in range(2, 42):
            node = {**plain, "__id__": i, "content": [node, {**plain, "__id__": i - 1}]}
        attributes(schema)["a"] = node

    forge(saved, change)
    start = time.perf_counter()
    with pytest.raises(ModelFileError, match="one object in two ways"):
        load(saved)
    assert time.perf_counter() - start < 60  # a busy machine needs some seconds, the walk would need days


# Files that would run code


def function(module, name):
    return {"__class__": name, "__module__": module, "__loader__": "FunctionNode"}


def text(value):
    return {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": json.dumps(value), "is_json": True}


def collection(kind, *content):
    return {"__class__": kind, "__module__": "builtins", "__loader__": f"{kind.title()}Node", "content": list(content)}


def attack(name, marker):
    """A node of a model that makes the marker when it is built, and the names that would have to be trusted for that."""
    command = f'mkdir "{marker}"'  # the same in every shell
    if name == "a dict whose keys are converted by a function":
        keys = collection("list", function("os", "system"))
        return {
            "__class__": "dict",
            "__module__": "builtins",
            "__loader__": "DictNode",
            "key_types": keys,
            "content": {command: text(0)},
        }, ["os.system"]
    if name == "a constructor with arguments":
        arguments = collection("tuple", text(command))
        return {"__class__": "system", "__module__": "os", "__loader__": "ConstructorFromReduceNode", "content": arguments}, ["os.system"]
    if name == "a reduce with arguments":
        reduce = {"args": collection("tuple", text(command))}
        empty = {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode", "key_types": collection("list"), "content": {}}
        return {"__class__": "system", "__module__": "os", "__loader__": "LossNode", "__reduce__": reduce, "content": empty}, ["os.system"]
    if name == "a list type that is a function":
        return {**collection("list", text(marker)), "__class__": "makedirs_all", "__module__": "users_attack"}, [
            "users_attack.makedirs_all"
        ]
    assert name == "a module that runs on import"
    return {**function("users_attack", "anything")}, ["users_attack.anything"]


ATTACKS = [
    "a dict whose keys are converted by a function",
    "a constructor with arguments",
    "a reduce with arguments",
    "a list type that is a function",
    "a module that runs on import",
]


@pytest.mark.parametrize("name", ATTACKS)
def test_a_malicious_file_runs_nothing(name, saved, tmp_path, monkeypatch):
    """The attack is real: it makes its marker where its types are trusted. Without that an error names them, and there is no marker."""
    marker = tmp_path / "marker"
    (tmp_path / "users_attack.py").write_text(
        f"import os\ndef makedirs_all(names):\n    os.makedirs(names[0])\n\nif {name == ATTACKS[-1]}:\n    os.makedirs({str(marker)!r})\n"
        "anything = None\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "users_attack", raising=False)
    node, names = attack(name, str(marker))
    forge(saved, lambda schema: attributes(schema).update(kernel=node))
    for _ in range(2):
        with pytest.raises(ModelFileError, match=rf"holds {names[0]}.*may be malicious; nothing in it was run"):
            load(saved)
        read_about(saved)
    assert not marker.exists()
    with pytest.raises(ModelFileError, match=names[0].replace(".", r"\.")):
        load(saved, trusted=["users_attack.other"])
    assert not marker.exists()
    with contextlib.suppress(ModelFileError):  # the marker is made, and then the model does not fit together
        load(saved, trusted=names)
    assert marker.exists()
    monkeypatch.delitem(sys.modules, "users_attack", raising=False)


@pytest.mark.parametrize(
    ("node", "name"),
    [
        (function("builtins", "eval"), "builtins.eval"),
        (function("refkernel.export.files", "save"), "refkernel.export.files.save"),
        (function("sklearn.datasets", "fetch_file"), "sklearn.datasets.fetch_file"),
        ({**function("refkernel.cli.app", "main"), "__loader__": "TypeNode"}, "refkernel.cli.app.main"),
        (
            {**function("operator", "methodcaller"), "__loader__": "OperatorFuncNode", "attrs": collection("tuple", text("fit"))},
            "operator.methodcaller",
        ),
        ({**function("pandas", "DataFrame"), "__loader__": "ObjectNode", "content": None}, "pandas.DataFrame"),
        ({**function("sklearn.tree._tree", "Tree"), "__loader__": "ObjectNode", "content": None}, "sklearn.tree._tree.Tree"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_functions_and_foreign_types_are_unknown_even_those_of_known_packages(node, name, saved):
    """Known are types by name, not packages: their other functions could read, write or download."""
    forge(saved, lambda schema: attributes(schema).update(kernel=node))
    with pytest.raises(ModelFileError, match=rf"holds {name},"):
        load(saved)


def test_a_method_of_a_known_type_is_unknown(saved):
    """Bound methods are callables that a file could choose."""

    def change(schema):
        kernel = attributes(schema)["kernel"]
        owner = {key: kernel[key] for key in ("__class__", "__module__")}
        attributes(schema)["a"] = {**owner, "__loader__": "MethodNode", "content": {"func": "fit", "obj": kernel}}

    forge(saved, change)
    with pytest.raises(ModelFileError, match=r"holds refkernel\.maps\.ReferenceKernel\.fit,"):
        load(saved)


class Touch:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
@both_readers
def test_a_pickle_is_never_loaded(read, protocol, tmp_path):
    """Renamed or not; unpickling it would leave a folder."""
    path, marker = tmp_path / "model.rk", tmp_path / "marker"
    path.write_bytes(pickle.dumps(Touch(marker), protocol))
    with pytest.raises(ModelFileError, match="looks like a pickle" if protocol else "is not a zip archive"):
        read(path)
    assert not marker.exists()
    pickle.loads(path.read_bytes())
    assert marker.exists()


def test_arrays_with_pickled_objects_are_never_unpickled(saved, tmp_path):
    """NumPy's format can hold pickles; they stay closed."""
    marker, entries = tmp_path / "marker", entries_of(saved)
    buffer = io.BytesIO()
    np.save(buffer, np.array([Touch(marker)], dtype=object), allow_pickle=True)
    array = next(entry for entry in entries if entry.endswith(".npy"))
    write_sealed(saved, entries | {array: buffer.getvalue()})
    with pytest.raises(ModelFileError, match="allow_pickle=False"):
        load(saved)
    assert not marker.exists()


def test_without_skops_the_extra_is_named(saved, monkeypatch):
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(ImportError, match=r'pip install "refkernel\[save\]"'):
        load(saved)
    with pytest.raises(ImportError, match=r'pip install "refkernel\[save\]"'):
        save(rk.SVDD(), saved)
    assert read_about(saved)["format"] == 1


# What forged files could still do once their types are known: D10 to D13 of the review


def node(kind, name, **rest):
    module, _, short = name.rpartition(".")
    return {"__class__": short, "__module__": module, "__loader__": kind, **rest}


@pytest.fixture
def called(monkeypatch):
    """The names of the known functions and types that were called while loading, by a copy of each that takes notes."""
    calls = []
    import sklearn.metrics._classification as classification

    original = classification.accuracy_score
    monkeypatch.setattr(
        classification, "accuracy_score", lambda *args, **kwargs: calls.append("accuracy_score") or original(*args, **kwargs)
    )
    return calls


CALLS = {
    "constructor": node(
        "ConstructorFromReduceNode", "sklearn.metrics._classification.accuracy_score", content=collection("tuple", text(0), text(0))
    ),
    "large matrix": node("ConstructorFromReduceNode", "scipy.sparse._lil.lil_matrix", content=collection("tuple", text([10**8, 2]))),
    "list type": {**collection("list", text(0)), "__class__": "accuracy_score", "__module__": "sklearn.metrics._classification"},
    "loss": node(
        "LossNode", "sklearn.metrics._classification.accuracy_score", content=text(None), __reduce__={"args": collection("tuple")}
    ),
    "key type": {
        **node("DictNode", "builtins.dict", content={"a": text(0)}),
        "key_types": collection("list", function("sklearn.metrics._classification", "accuracy_score")),
    },
    "default factory": node(
        "DefaultDictNode",
        "collections.defaultdict",
        content={"main": text({}), "default_factory": function("sklearn.metrics._classification", "accuracy_score")},
    ),
    "partial": node(
        "PartialNode",
        "functools.partial",
        content={
            "func": function("sklearn.metrics._classification", "accuracy_score"),
            "args": text([]),
            "kwds": text({}),
            "namespace": text(None),
        },
    ),
    "a constructor of a known type": node("ConstructorFromReduceNode", "refkernel.kernels.RBF", content=collection("tuple", text(1.0))),
}


@pytest.mark.parametrize("name", CALLS)
def test_loading_calls_no_known_function(name, saved, called):
    """D11: known names may be looked up, or rebuilt from their attributes; every kind of node that would call them is refused."""
    forge(saved, lambda schema: attributes(schema).update(kernel=CALLS[name]))
    start = time.perf_counter()
    with pytest.raises(ModelFileError, match="may be malicious"):
        load(saved)
    assert called == []
    assert time.perf_counter() - start < 60  # a busy machine needs some seconds


def test_a_node_of_a_known_number_cannot_be_swapped_for_another_of_equal_size(saved, called):
    """D11: skops builds the first of the nodes with one id. A list of functions, met first, must not become the types of keys."""

    def change(schema):
        functions = {**collection("list", function("sklearn.metrics._classification", "accuracy_score")), "__id__": 77}
        types = {**collection("list", node("TypeNode", "builtins.str")), "__id__": 77}
        attributes(schema)["A"] = functions
        attributes(schema)["b"] = node("DictNode", "builtins.dict", content={"a": text(0)}, key_types=types)

    forge(saved, change)
    with pytest.raises(ModelFileError, match="one object in two ways"):
        load(saved)
    assert called == []


@pytest.mark.parametrize("entry", ["refkernel.json", "schema.json"])
def test_a_size_that_is_declared_too_small_is_not_believed(entry, saved):
    """D12: the entry declares 1,000 bytes and unpacks to 64 MB; no more than some steps of it ever exist."""
    entries = entries_of(saved)
    write_sealed(saved, entries | {entry: entries[entry] + b" " * (64 << 20)})
    data = bytearray(saved.read_bytes()[:-64])
    size = (len(entries[entry]) + (64 << 20)).to_bytes(4, "little")
    while (at := data.find(size)) >= 0:  # in the local header and in the directory
        data[at : at + 4] = (1000).to_bytes(4, "little")
    saved.write_bytes(data + hashlib.sha256(data).hexdigest().encode())
    tracemalloc.start()
    with pytest.raises(ModelFileError, match=r"model\.rk"):
        load(saved)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


def npy(array, shape=None):
    """An array in NumPy's format, with another shape in its header where one is given."""
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": array.dtype.str, "fortran_order": False, "shape": shape or array.shape})
    return buffer.getvalue() + array.tobytes()


@pytest.mark.parametrize("shape", [(10**12,), (4, 10**9), (3,), (-1,)], ids=repr)
def test_an_array_whose_header_promises_more_than_its_bytes_is_refused(shape, saved):
    """D12: NumPy allocates what the header says before it reads."""
    entries = entries_of(saved)
    array = next(entry for entry in entries if entry.endswith(".npy"))
    write_sealed(saved, entries | {array: npy(np.zeros(2), shape)})
    with pytest.raises(ModelFileError, match=r"should have|cannot be read"):
        load(saved)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("versions", []),
        ("versions", {"refkernel": 1}),
        ("created", 7),
        ("created", None),
        ("about", []),
        ("about", "x"),
        ("n_features_in", "3"),
        ("n_features_in", True),
        ("feature_names_in", [1, 2, 3]),
        ("other_types", None),
        ("format", True),
        ("package", {}),
    ],
)
@both_readers
def test_a_forged_field_of_the_metadata_is_refused_by_its_name(read, field, value, saved):
    """D13: each field has its form."""
    entries = entries_of(saved)
    metadata = json.loads(entries["refkernel.json"]) | {field: value}
    write_sealed(saved, entries | {"refkernel.json": json.dumps(metadata)})
    with pytest.raises(ModelFileError, match=field):
        read(saved)


def sparse_entry(matrix, **changed):
    parts = {
        "data": matrix.data,
        "indices": matrix.indices,
        "indptr": matrix.indptr,
        "shape": np.array(matrix.shape),
        "format": b"csr",
    } | changed
    buffer = io.BytesIO()
    np.savez(buffer, **parts)
    return buffer.getvalue()


SPARSE = sp.csr_matrix(np.eye(4, 3) + np.ones((4, 3)))


@pytest.mark.parametrize(
    "changed",
    [
        {"indices": np.where(SPARSE.indices == 2, 1_000_000, SPARSE.indices)},
        {"indices": np.where(SPARSE.indices == 2, -1, SPARSE.indices)},
        {"indptr": np.array([0, 9, 3, 6, 12], dtype=np.int32)},
        {"indptr": np.array([0, 3, 6, 9, 10**6], dtype=np.int32)},
        {"shape": np.array([4, 10**9])},
        {"shape": np.array([4, 2])},
        {"format": b"dia"},
        {"format": b"lil"},
    ],
    ids=repr,
)
def test_a_forged_sparse_matrix_is_refused(changed, tmp_path):
    """D10: an index beyond the columns, a falling or far row pointer, another shape, another layout."""
    path = save(rk.SVDD(nu=1.0).fit(SPARSE), tmp_path / "model.rk")
    entries = entries_of(path)
    name = next(entry for entry in entries if entry.endswith(".npz"))
    write_sealed(path, entries | {name: sparse_entry(SPARSE)})
    load(path)
    write_sealed(path, entries | {name: sparse_entry(SPARSE, **changed)})
    with pytest.raises(ModelFileError, match=r"model\.rk"):
        load(path)


FORGED_ARRAYS = [
    ("support_vectors_", np.zeros((3, 2))),
    ("support_vectors_", np.zeros(6)),
    ("support_vectors_", np.zeros((10**5, 3))),
    ("support_", np.array([10**9, -5])),
    ("support_", np.array([0.5])),
    ("dual_coef_", np.zeros((1, 1))),
    ("dual_coef_", np.full((1, 2), np.nan)),
    ("dual_coef_", np.array([["a", "b"]])),
]


@pytest.mark.parametrize(("name", "array"), FORGED_ARRAYS, ids=lambda value: value if isinstance(value, str) else str(value.shape))
def test_arrays_that_do_not_fit_each_other_are_refused(name, array, samples, tmp_path):
    """D9, D10: support vectors, their weights and their rows, in every shape and type but the right one."""
    path = save(rk.SVDD().fit(samples(30, 3, 0)), tmp_path / "model.rk")
    schema = json.loads(entries_of(path)["schema.json"])
    write_sealed(path, entries_of(path) | {attributes(schema)[name]["file"]: npy(array)})
    with pytest.raises(ModelFileError, match=rf"do not fit together: {name}|do not fit together: (dual_coef_|support_vectors_)"):
        load(path)


@pytest.mark.parametrize(
    ("name", "value"), [("n_features_in_", 5000), ("n_features_in_", -1), ("n_features_in_", "3"), ("offset_", "x"), ("kernel_", [])]
)
def test_numbers_and_parts_that_do_not_fit_are_refused(name, value, samples, tmp_path):
    """D9: the number of features that a model claims is that of its support vectors."""
    path = save(rk.SVDD().fit(samples(30, 3, 0)), tmp_path / "model.rk")
    forge(path, lambda schema: attributes(schema).update({name: text(value)}))
    with pytest.raises(ModelFileError, match=rf"do not fit together: ({name}|support_vectors_)"):
        load(path)


@pytest.mark.parametrize("name", ["references_", "reference_indices_", "eigenvalues_"])
def test_references_that_do_not_fit_are_refused(name, samples, tmp_path):
    """A map with a reference, an index or an eigenvalue less."""
    path = save(rk.ReferenceMap(references="subset", random_state=0).fit(samples(30, 3, 0)), tmp_path / "map.rk")
    schema, array = json.loads(entries_of(path)["schema.json"]), getattr(load(path), name)
    write_sealed(path, entries_of(path) | {attributes(schema)[name]["file"]: npy(np.ascontiguousarray(array[:-1]))})
    with pytest.raises(ModelFileError, match="do not fit together"):
        load(path)


def test_a_random_state_beyond_its_key_is_refused(samples, tmp_path):
    """NumPy would read memory behind the key."""
    path = save(rk.SVDD(random_state=np.random.RandomState(0)).fit(samples(20, 2, 0)), tmp_path / "model.rk")

    def change(schema):
        attributes(schema)["random_state"]["content"]["content"]["state"]["content"]["pos"] = text(10**6)

    forge(path, change)
    with pytest.raises(ModelFileError, match="position 1000000"):
        load(path)


def test_a_one_hot_encoder_that_writes_outside_its_columns_is_refused(tmp_path):
    """Its sparse output would hold column numbers that do not exist."""
    frame = pd.DataFrame({"a": np.arange(12.0) % 5, "k": list("abc") * 4})
    columns = ColumnTransformer([("k", OneHotEncoder(), ["k"])], remainder="passthrough")
    path = save(make_pipeline(columns, rk.SVDD()).fit(frame), tmp_path / "model.rk")

    def change(schema):
        for found in nodes(schema):
            if found["__class__"] == "OneHotEncoder" and "_n_features_outs" in found["content"]["content"]:
                found["content"]["content"]["_n_features_outs"] = collection("list", text(1))

    forge(path, change)
    with pytest.raises(ModelFileError, match="_n_features_outs"):
        load(path)


def test_terminal_escapes_of_a_file_are_spelled_out_in_errors(saved):
    """D15: what a file calls its types reaches a terminal through the message."""
    forge(saved, lambda schema: attributes(schema).update(kernel=function("os", "\x1b[2J\x1b]0;owned\x07")))
    with pytest.raises(ModelFileError) as caught:
        load(saved)
    assert "\x1b" not in str(caught.value)
    assert r"\x1b[2J" in str(caught.value)


@pytest.mark.parametrize("name", ["offset_", "kernel_", "support_", "n_features_in_"])
def test_a_model_without_a_part_is_refused(name, samples, tmp_path):
    path = save(rk.SVDD().fit(samples(20, 2, 0)), tmp_path / "model.rk")
    forge(path, lambda schema: attributes(schema).pop(name))
    with pytest.raises(ModelFileError, match=f"{name} is missing"):
        load(path)


def test_a_file_of_an_older_version_with_a_class_that_is_gone_says_so(tmp_path, monkeypatch):
    """And still says that it may be malicious: a forged file may claim any version."""
    path = rk.save(rk.SVDD().fit(np.eye(3)), tmp_path / "m.rk")
    monkeypatch.setattr("refkernel.export.schema.objects", lambda: frozenset())
    with pytest.raises(rk.exceptions.ModelFileError) as same:
        rk.load(path)
    assert "older than" not in str(same.value)
    monkeypatch.setattr("refkernel.__version__", "99.1")
    with pytest.raises(rk.exceptions.ModelFileError, match=r"may be malicious.*which is older than this one.*fit the model again"):
        rk.load(path)
