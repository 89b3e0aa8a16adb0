"""The article's tasks: embedded splits, the authors' files, and downloads that go wrong."""

import dataclasses
import hashlib
import os
import statistics
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
import requests
from scipy.io import savemat

from refkernel.datasets import DataError, DownloadError, list_tasks, load_task, published, tasks

EMBEDDED = ["Iris1", "Iris2", "Iris3", "Seed1", "Seed2", "Seed3", "Ion1", "Ion2", "Son1", "Son2"]
ALL = [*EMBEDDED, "Bank1", "Bank2", "Happ1", "Happ2"]
DATASETS = ["Iris", "Seeds", "Ionosphere", "Sonar"]
# the columns N, T, N_tot and D of the article's table "Dataset properties"
PRINTED = {
    **{f"Iris{k}": ({35}, {35}, 150, 4) for k in (1, 2, 3)},
    **{f"Seed{k}": ({49}, {49}, 210, 7) for k in (1, 2, 3)},
    "Ion1": ({88, 89}, {88, 89}, 351, 34),
    "Ion2": ({157, 158}, {88, 89}, 351, 34),
    "Son1": ({68}, {68}, 208, 60),
    "Son2": ({78}, {68}, 208, 60),
    "Bank1": ({74, 75}, {74, 75}, 250, 6),
    "Bank2": ({100, 101}, {74, 75}, 250, 6),
    "Happ1": ({54}, {47}, 143, 6),
    "Happ2": ({47}, {47}, 143, 6),
}
CONSTANT = {"Ion1": 1, "Ion2": 2}  # f2 is 0 everywhere, f1 is 1 in the good returns
IRIS = "iris_targetclass_1.mat"


def check_form(task, name, split):
    """Assert what every loaded split promises, and that its sizes are the printed ones."""
    n, T, total, d = PRINTED[name]
    assert (task.name, task.split) == (name, split)
    for X, y in ((task.X_train, task.y_train), (task.X_test, task.y_test)):
        assert X.dtype == np.float64
        assert X.flags.c_contiguous
        assert X.flags.writeable
        assert y.dtype.kind == "i"
        assert X.shape == (y.size, d - CONSTANT.get(name, 0))
        assert set(y.tolist()) == {1, -1}
    n_targets, n_outliers = (task.y_train == 1).sum(), (task.y_train == -1).sum()
    assert n_targets in n
    assert min(n_targets, n_outliers) in T
    assert task.y_train.size + task.y_test.size == total


@pytest.mark.parametrize("split", range(5))
@pytest.mark.parametrize("name", EMBEDDED)
def test_an_embedded_split_has_the_printed_sizes(name, split):
    """N, T, N_tot and D of the article's table hold for our splits too."""
    check_form(load_task(name, split), name, split)


@pytest.mark.parametrize("dataset", DATASETS)
def test_splits_are_disjoint_cover_all_rows_and_hold_70_percent_of_each_class(dataset):
    """Every row is in training or in test, once, and each class is cut at 70 %, to the nearest row."""
    _, classes = tasks.embedded_data(dataset)
    for split in range(5):
        train, test = tasks.split_rows(classes, split)
        assert sorted([*train, *test]) == list(range(classes.size))
        for name in set(classes.tolist()):
            size = sum(classes == name)
            assert abs(sum(classes[train] == name) - 0.7 * size) <= 0.5 + 1e-9


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_five_splits_differ(dataset):
    """No two splits of a data set train on the same rows."""
    _, classes = tasks.embedded_data(dataset)
    assert len({tuple(tasks.split_rows(classes, split)[0].tolist()) for split in range(5)}) == 5


def test_splits_are_the_same_on_every_machine():
    """A split is fixed for good: these digests were taken when the splits were made."""
    digests = {}
    for dataset in DATASETS:
        _, classes = tasks.embedded_data(dataset)
        rows = ";".join(" ".join(map(str, tasks.split_rows(classes, split)[0])) for split in range(5))
        digests[dataset] = hashlib.sha256(rows.encode()).hexdigest()[:16]
    assert digests == {
        "Iris": "b553c468b83aa39a",
        "Seeds": "7cca65c7de6ab54f",
        "Ionosphere": "86da8b33cc6c89e2",
        "Sonar": "0f18fd604bbd4e2a",
    }


@pytest.mark.parametrize("name", EMBEDDED)
def test_an_embedded_split_is_standardised_by_its_training_targets(name):
    """Each feature is (x - mean) / deviation, ddof 1, of the raw training targets, in training and in test; constant ones are gone."""
    info = tasks.TASKS[name]
    X, classes = tasks.embedded_data(info.dataset)
    train, test = tasks.split_rows(classes, 2)
    task, kept = load_task(name, 2), 0
    for column in X.T:
        known = [column[row] for row in train if classes[row] == info.target]
        mean, deviation = statistics.fmean(known), statistics.stdev(known)
        if deviation == 0:
            continue
        np.testing.assert_allclose(task.X_train[:, kept], (column[train] - mean) / deviation, atol=1e-12)
        np.testing.assert_allclose(task.X_test[:, kept], (column[test] - mean) / deviation, atol=1e-12)
        kept += 1
    assert kept == task.X_train.shape[1]
    targets = task.X_train[task.y_train == 1]
    np.testing.assert_allclose(targets.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(targets.std(axis=0, ddof=1), 1)
    assert ((task.y_train == 1) == (classes[train] == info.target)).all()
    assert ((task.y_test == 1) == (classes[test] == info.target)).all()


def test_a_loaded_task_is_the_callers_own():
    """Writing into a loaded split does not change what the next caller gets."""
    first = load_task("Seed1", 1)
    kept = first.X_train.copy()
    first.X_train[:] = 0
    first.y_test[:] = 0
    again = load_task("Seed1", 1)
    np.testing.assert_array_equal(again.X_train, kept)
    assert set(again.y_test.tolist()) == {1, -1}


@pytest.mark.parametrize(("splits", "names"), [("embedded", EMBEDDED), ("authors", ALL)])
def test_the_list_names_the_tasks_with_their_sizes(splits, names):
    """list_tasks gives the article's tasks in its order, with its numbers of samples and features."""
    listed = list_tasks(splits)
    assert [task.name for task in listed] == names
    for task in listed:
        *_, total, d = PRINTED[task.name]
        assert (task.n_targets + task.n_outliers, task.n_features, task.embedded) == (total, d, task.name in EMBEDDED)
        if task.embedded:
            _, classes = tasks.embedded_data(task.dataset)
            assert task.n_targets == sum(classes == task.target)


@pytest.mark.parametrize(
    ("args", "options", "said"),
    [
        (("Seed4",), {}, ["Seed4", "embedded", *EMBEDDED]),
        (("seed1",), {"splits": "authors"}, ["seed1", *ALL]),
        (("Bank1",), {}, ["Bank1", 'splits="authors"']),
        (("Happ2",), {}, ["Happ2", 'splits="authors"']),
        (("Seed1", 5), {}, ["split=5", "0 to 4"]),
        (("Seed1", -1), {"splits": "authors"}, ["split=-1", "0 to 4"]),
        (("Seed1", 1.0), {}, ["split=1.0", "0 to 4"]),
        (("Seed1", True), {}, ["split=True", "0 to 4"]),
        (("Seed1",), {"splits": "mine"}, ["mine", "embedded", "authors"]),
        (("Seed1",), {"data_dir": "somewhere"}, ["somewhere", 'splits="authors"']),
    ],
)
def test_what_is_not_there_is_named_with_what_is(args, options, said):
    """An unknown task, split or kind of splits: the error names it and lists what there is."""
    with pytest.raises(ValueError) as caught:
        load_task(*args, **options)
    assert all(part in str(caught.value) for part in said)


def test_list_tasks_refuses_unknown_splits():
    """list_tasks knows embedded and authors only, and says so."""
    with pytest.raises(ValueError, match=r"splits='theirs' must be one of .*embedded.*authors"):
        list_tasks("theirs")


# ---- the authors' files


@pytest.fixture(scope="module")
def authors_folder():
    if "REFKERNEL_DATA" not in os.environ:
        pytest.skip("the authors' files are found through REFKERNEL_DATA (a folder that holds them as authors/), which is not set")
    return Path(os.environ["REFKERNEL_DATA"]) / "authors"


def test_every_task_has_a_checksum():
    """The files of the 14 tasks are those of the checksum table."""
    assert sorted(task.authors_file for task in list_tasks("authors")) == sorted(published.AUTHORS.digests)


def test_the_checksums_are_the_published_ones(authors_folder):
    """The table in the code is the one that was published with the files."""
    lines = (authors_folder / "SHA256SUMS").read_text().splitlines()
    assert {name: digest for digest, name in (line.split() for line in lines)} == published.AUTHORS.digests


@pytest.mark.parametrize("name", ALL)
def test_the_authors_splits_have_the_printed_sizes(authors_folder, name):
    """The authors' five splits load with the printed sizes, differ, and are standardised by their training targets already."""
    loaded = [load_task(name, split, splits="authors") for split in range(5)]
    for split, task in enumerate(loaded):
        check_form(task, name, split)
        targets = task.X_train[task.y_train == 1]
        np.testing.assert_allclose(targets.mean(axis=0), 0, atol=1e-9)
        np.testing.assert_allclose(targets.std(axis=0, ddof=1), 1, atol=1e-9)
    assert len({task.X_train.tobytes() for task in loaded}) == 5


def fake_sets(seed=0):
    """Five small splits in the layout of the authors' files: {key: 1 × 5 cells}."""
    rng = np.random.default_rng(seed)
    sets = {f"{kind}5sets": np.empty((1, 5), dtype=object) for kind in ("traindata", "trainlabels", "testdata", "testlabels")}
    for k in range(5):
        for kind, n in (("train", 6), ("test", 3)):
            sets[f"{kind}data5sets"][0, k] = rng.normal(size=(2, n))
            sets[f"{kind}labels5sets"][0, k] = np.where(np.arange(n) % 3, 1, -1).astype(np.int16)[:, None]
    return sets


def ask(monkeypatch, url):
    """Let downloads ask another server."""
    monkeypatch.setattr(published, "AUTHORS", dataclasses.replace(published.AUTHORS, base_url=url))


@pytest.fixture
def good(tmp_path, monkeypatch):
    """The bytes of a file that takes the place of Iris1's, with nothing in the environment but an empty cache."""
    savemat(tmp_path / "made.mat", fake_sets())
    content = (tmp_path / "made.mat").read_bytes()
    monkeypatch.setitem(published.AUTHORS.digests, IRIS, hashlib.sha256(content).hexdigest())
    monkeypatch.delenv("REFKERNEL_DATA", raising=False)
    monkeypatch.setenv("REFKERNEL_CACHE", str(tmp_path / "cache"))
    ask(monkeypatch, "http://127.0.0.1:9/never-asked/")
    return content


def check_loads(**options):
    """Assert that Iris1 loads, and is the fake file: samples in rows."""
    for split in range(5):
        task = load_task("Iris1", split, splits="authors", **options)
        np.testing.assert_array_equal(task.X_train, fake_sets()["traindata5sets"][0, split].T)
        np.testing.assert_array_equal(task.X_test, fake_sets()["testdata5sets"][0, split].T)
        assert task.y_train.tolist() == [-1, 1, 1, -1, 1, 1]
        assert task.X_train.flags.c_contiguous


@pytest.mark.parametrize("where", ["data_dir", "REFKERNEL_DATA", "REFKERNEL_CACHE"])
def test_a_file_is_found_where_it_may_be(good, tmp_path, monkeypatch, where):
    """data_dir, REFKERNEL_DATA/authors and the cache are read without a download."""
    folder = tmp_path / "mine" / ("authors" if where == "REFKERNEL_DATA" else "")
    folder.mkdir(parents=True)
    (folder / IRIS).write_bytes(good)
    if where != "data_dir":
        monkeypatch.setenv(where, str(tmp_path / "mine"))
    check_loads(**({"data_dir": folder} if where == "data_dir" else {}))


def test_data_dir_comes_first(good, tmp_path, monkeypatch):
    """data_dir is read even where REFKERNEL_DATA and the cache hold something broken."""
    for folder in ("authors", "cache", "mine"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / IRIS).write_bytes(good if folder == "mine" else b"broken")
    monkeypatch.setenv("REFKERNEL_DATA", str(tmp_path))
    check_loads(data_dir=str(tmp_path / "mine"))


@pytest.mark.parametrize("where", ["data_dir", "REFKERNEL_DATA"])
@pytest.mark.parametrize("change", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:-1] + bytes([b[-1] ^ 1])])
def test_a_truncated_or_changed_file_is_refused_and_left_alone(good, tmp_path, monkeypatch, where, change):
    """The user's own file is checked too: the error names it, and the file stays as it was."""
    path = tmp_path / "authors" / IRIS
    path.parent.mkdir()
    path.write_bytes(change(good))
    if where == "REFKERNEL_DATA":
        monkeypatch.setenv("REFKERNEL_DATA", str(tmp_path))
    with pytest.raises(DataError, match="truncated or changed") as caught:
        load_task("Iris1", splits="authors", data_dir=path.parent if where == "data_dir" else None)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == change(good)


def test_a_folder_without_the_file_is_named(good, tmp_path):
    """data_dir is the user's word: a file that it lacks is an error, not a download."""
    with pytest.raises(DataError, match=IRIS) as caught:
        load_task("Iris1", splits="authors", data_dir=tmp_path)
    assert str(tmp_path) in str(caught.value)


# ---- downloads


@pytest.fixture
def server(good, local_server, monkeypatch):
    """A local server in place of the authors' repository; ``mood`` says how it behaves."""
    server = local_server(good)
    ask(monkeypatch, server.url)
    return server


def cached():
    """The names in the cache, temporary ones too."""
    folder = Path(os.environ["REFKERNEL_CACHE"])
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_file_is_downloaded_once(server):
    """The first load downloads the file into the cache, the next ones read it there."""
    check_loads()
    check_loads()
    assert server.asked == [f"/{IRIS}"]
    assert cached() == [IRIS]


@pytest.mark.parametrize("mood", ["404", "500", "cut", "cut, no length", "wrong bytes", "empty", "stalls"])
@pytest.mark.parametrize("before", [None, b"left over by something else"])
def test_a_download_that_fails_leaves_nothing_and_says_what_to_do(server, monkeypatch, mood, before):
    """A server that misbehaves: one clear error, chained; nothing in the cache, not even what was broken before; then a retry works."""
    monkeypatch.setattr(published, "TIMEOUT", 0.2)
    if before is not None:
        folder = Path(os.environ["REFKERNEL_CACHE"])
        folder.mkdir()
        (folder / IRIS).write_bytes(before)
    server.mood = mood
    with pytest.raises(DownloadError) as caught:
        load_task("Iris1", splits="authors")
    assert all(
        part in str(caught.value) for part in (IRIS, published.AUTHORS.base_url, "try again", "data_dir", "--data-dir", "REFKERNEL_DATA")
    )
    assert caught.value.__cause__ is not None
    assert cached() == []
    server.mood = "good"
    check_loads()
    assert cached() == [IRIS]


def test_no_network_says_what_to_do(good, monkeypatch):
    """Nobody answers: the same clear error, and nothing in the cache."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as closed:
        ask(monkeypatch, f"http://127.0.0.1:{closed.server_port}/")
    with pytest.raises(DownloadError, match=r"try again.*by hand.*REFKERNEL_DATA") as caught:
        load_task("Iris1", splits="authors")
    assert isinstance(caught.value.__cause__, requests.ConnectionError)
    assert cached() == []


def test_a_download_stopped_by_the_user_leaves_nothing(server, monkeypatch):
    """Ctrl-C in the middle of a download goes through, and leaves nothing in the cache; then a retry works."""

    def stopped(self, *args, **kwargs):
        yield self.raw.read(10)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(requests.Response, "iter_content", stopped)
        with pytest.raises(KeyboardInterrupt):
            load_task("Iris1", splits="authors")
    assert cached() == []
    check_loads()


def test_a_cache_that_cannot_be_written_is_named(server, tmp_path, monkeypatch):
    """Where the cache folder cannot be made, the error names it and the variable that moves it."""
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("REFKERNEL_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(DownloadError, match="REFKERNEL_CACHE") as caught:
        load_task("Iris1", splits="authors")
    assert str(tmp_path / "file" / "cache") in str(caught.value)


def test_without_pooch_the_extra_is_named(good, monkeypatch):
    """A download without pooch says what to install; embedded tasks need none."""
    monkeypatch.setitem(sys.modules, "pooch", None)
    load_task("Iris1")
    with pytest.raises(ImportError, match=r"pip install refkernel\[data\]"):
        load_task("Iris1", splits="authors")


def test_the_cache_is_the_users_by_default(monkeypatch):
    """Without REFKERNEL_CACHE files go where pooch keeps a user's caches, under our name."""
    monkeypatch.delenv("REFKERNEL_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path.home() / "elsewhere"))
    assert "refkernel" in published.AUTHORS.cache_folder().parts
