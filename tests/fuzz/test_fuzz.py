"""Random files and inputs: each ends in a result or in a documented error with a message.

Every case is a seed, and runs in a forked process with limits on time and memory: a traceback, a signal, a hang of more than 10 s, more
than 1 GB, or a row that is lost without a word is a failure that names the seed. ``make fuzz`` runs thousands; the suite runs a few dozen.
"""

import csv
import hashlib
import io
import json
import os
import re
import resource
import signal
import sys
import traceback
import warnings
import zipfile
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

pytest.importorskip("typer")
pytest.importorskip("skops")
if not hasattr(os, "fork") or sys.platform == "darwin":  # numerical libraries there do not survive a fork
    pytest.skip("needs fork", allow_module_level=True)

from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits
from typer.testing import CliRunner

import refkernel as rk
from refkernel.cli import app
from refkernel.export.files import load, read_about, save

LONG = "REFKERNEL_FUZZ" in os.environ
MODEL_FILES, TABLES, TYPED_TABLES, INPUTS = (1_000, 1_000, 500, 2_000) if LONG else (40, 40, 40, 60)
SECONDS = 10
MEMORY = 1 << 30

DOCUMENTED = (ValueError, TypeError)
"""What a public function may raise; ModelFileError and TableError are ValueErrors."""


def in_child(case, seed, folder):
    """How a case ended: its own word, or what went wrong."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        signal.alarm(6 * SECONDS)  # the machine may be busy: the processor's time is what counts
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        in_use = int(re.search(r"VmSize:\s+(\d+)", open("/proc/self/status").read())[1]) * 1024  # noqa: SIM115 (the process ends here)
        resource.setrlimit(resource.RLIMIT_AS, (in_use + MEMORY, in_use + MEMORY))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            warnings.simplefilter("ignore")
            threadpool_limits(1)  # the threads of OpenMP do not survive a fork, and would be waited for
            word = case(np.random.default_rng(seed), folder)
        except BaseException:
            word = f"FAILED {traceback.format_exc()[-1500:]}"
        os.write(write, word.encode()[:4000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        word = pipe.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return word or f"FAILED with {'signal ' + signal.Signals(-status).name if status < 0 else f'exit code {status}'}"


def run_all(name, case, count, folder):
    """All seeds; the failures, and a line of figures."""
    words = {}
    for seed in range(count):
        place = folder / str(seed)
        place.mkdir()
        words[seed] = in_child(case, seed, place)
        for path in place.iterdir():
            path.unlink()
        place.rmdir()
    endings = Counter("FAILED" if word.startswith("FAILED") else word for word in words.values())
    print(f"\n{name}: {count:,} cases, " + ", ".join(f"{number:,} {word}" for word, number in endings.most_common()))
    failed = {seed: word for seed, word in words.items() if word.startswith("FAILED")}
    shown = "\n".join(f"seed {seed}: {word}" for seed, word in list(failed.items())[:10])
    assert not failed, f"{len(failed)} of {count} failed:\n{shown}"


def documented(call):
    """The result of a call, or None where it raised a documented error with a message."""
    try:
        return call()
    except DOCUMENTED as error:
        if not str(error).strip():
            raise AssertionError(f"{type(error).__name__} without a message") from error
        return None


def command(*arguments):
    """The output and the success of a command, which may refuse but not fail."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exit_code not in (0, 1) or not (result.exception is None or isinstance(result.exception, SystemExit)):
        raise AssertionError(f"{arguments}: exit code {result.exit_code}\n{result.output}") from result.exception
    assert result.exit_code == 0 or "Error: " in result.output
    assert "\x1b" not in result.output
    return result.output, result.exit_code == 0


# Model files


def frame_of(n=24, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.normal(size=(n, 3)).round(4), columns=list("abc"))


@pytest.fixture(scope="module")
def model_files(tmp_path_factory):
    """One file of each kind of model, and the compiled code that they need."""
    folder, frame, y = tmp_path_factory.mktemp("models"), frame_of(), np.r_[np.ones(18), -np.ones(6)]
    frame.assign(k=["x", "y"] * 12).to_csv(folder / "data.csv", index=False)
    sparse = sp.csr_matrix(frame.to_numpy() * (frame.to_numpy() > 0))
    models = {
        "svdd": rk.SVDD().fit(frame),
        "sparse": rk.SVDD().fit(sparse),
        "ocsvm": rk.OneClassSVM(rk.ReferenceKernel(references="case2", random_state=0)).fit(frame),
        "esvdd": rk.ESVDD().fit(frame),
        "residual": rk.ReferenceResidual(random_state=0).fit(frame),
        "map": make_pipeline(rk.TargetScaler(), rk.ReferenceMap(random_state=0), rk.SVDD("linear")).fit(frame),
        "search": rk.OneClassGridSearch(rk.SVDD(), {"nu": [0.1, 0.3]}, cv=2, random_state=np.random.RandomState(0)).fit(frame, y),
        "repel": rk.SVDD(negatives="repel").fit(frame, y),
        "auto": rk.AutoDetector().fit(frame),
        "conformal": rk.ConformalDetector(rk.SVDD(), 0.1).fit(frame),
    }
    for name, model in models.items():
        save(model, folder / f"{name}.rk")
    assert command("fit", folder / "data.csv", "--out", folder / "table.rk")[1]
    assert command("fit", folder / "data.csv", "--model", "auto", "--out", folder / "auto_table.rk")[1]
    for path in folder.glob("*.rk"):
        command("inspect", path)
        command("score", path, folder / "data.csv", "--out", folder / "out.csv")
    return folder


def resealed(entries):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
        archive.comment = b"refkernel sha256 " + b"0" * 64
    return sealed(bytearray(buffer.getvalue()))


def sealed(data):
    body = bytes(data[:-64])
    return body + hashlib.sha256(body).hexdigest().encode()


VALUES = [None, 0, -1, 1, 2**63, 1e308, "", "x", "\x1b[2J", [], {}, [[]], True, "builtins", "os", "system", [0] * 50, {"a": {}}]


def places(value):
    """(container, key) of every value in some JSON."""
    waiting, found = [value], []
    while waiting:
        inner = waiting.pop()
        keys = list(inner) if isinstance(inner, dict) else range(len(inner)) if isinstance(inner, list) else ()
        found += [(inner, key) for key in keys]
        waiting += [inner[key] for key in keys]
    return found


def changed_json(rng, text):
    value = json.loads(text)
    for _ in range(rng.integers(1, 4)):
        found = places(value)
        container, key = found[rng.integers(len(found))]
        kind = rng.integers(4)
        if kind == 0:
            container[key] = json.loads(json.dumps(VALUES[rng.integers(len(VALUES))]))
        elif kind == 1:
            other, place = found[rng.integers(len(found))]
            container[key] = json.loads(json.dumps(other[place]))
        elif kind == 2:
            del container[key]
        elif isinstance(container[key], str) and re.fullmatch(r"-?\d+(\.\d+)?", container[key]):
            container[key] = str(rng.choice(["-1", "0", "1000000", "1e400", "NaN", "null", "[]", '"x"']))
        else:
            container[key] = json.loads(json.dumps(VALUES[rng.integers(len(VALUES))]))
    return json.dumps(value)


def random_array(rng):
    shape = tuple(int(size) for size in rng.integers(0, 5, size=rng.integers(0, 4)))
    dtype = rng.choice(["<f8", "<f4", "<i8", "|b1", "<U3", "|S2", "<c16"])
    values = rng.choice([0.0, 1.0, -1.0, 1e300, np.nan, np.inf], size=shape)
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype)


def changed_array(rng, content):
    buffer = io.BytesIO()
    kind = rng.integers(3)
    if kind == 0:
        np.save(buffer, random_array(rng))
    elif kind == 1 and content.startswith(b"\x93NUMPY"):
        return re.sub(rb"'shape': \([^)]*\)", b"'shape': (%d, 9)" % rng.integers(-1, 10**6), content, count=1)
    elif kind == 2 and content.startswith(b"\x93NUMPY"):
        array = np.load(io.BytesIO(content))
        np.save(buffer, np.roll(array, 1, axis=-1)[..., :-1] if array.ndim and array.size else array[None])
    return buffer.getvalue()


def mutated_model(rng, folder):
    names = sorted(path.name for path in folder.glob("*.rk"))
    data = bytearray((folder / names[rng.integers(len(names))]).read_bytes())
    kind = rng.integers(8)
    if kind < 2:  # bytes, with a right checksum or without
        for _ in range(rng.integers(1, 6)):
            data[rng.integers(len(data) - 100)] ^= 1 << int(rng.integers(8))
        return sealed(data) if kind else bytes(data)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    if kind < 5:
        entries["schema.json"] = changed_json(rng, entries["schema.json"])
    elif kind == 5:
        entries["refkernel.json"] = changed_json(rng, entries["refkernel.json"])
    else:
        arrays = [name for name in entries if name.endswith((".npy", ".npz"))]
        for _ in range(rng.integers(1, 3)):
            name = arrays[rng.integers(len(arrays))]
            entries[name] = changed_array(rng, entries[name])
    return resealed(entries)


def test_no_model_file_does_harm(model_files, tmp_path):
    """Loading, predicting, inspecting and scoring end in a result or a message."""
    X = frame_of(5, 1)

    def case(rng, folder):
        path = folder / "model.rk"
        path.write_bytes(mutated_model(rng, model_files))
        documented(lambda: read_about(path))
        model = documented(lambda: load(path))
        if model is not None and hasattr(model, "predict"):
            labels = documented(lambda: model.predict(X))
            assert labels is None or set(np.unique(labels)) <= {-1, 1}
        command("inspect", path)
        scored = command("score", path, model_files / "data.csv", "--out", folder / "out.csv")[1]
        return "refused" if model is None else "scored" if scored else "loaded, and not scored"

    run_all("model files", case, MODEL_FILES, tmp_path)


# Tables

PIECES = [
    '"',
    '""',
    ",",
    ";",
    "\t",
    "\r",
    "\n",
    "\r\n",
    "\0",
    "\ufeff",
    "é",
    "\x1b[2J",
    "=1+1",
    "'",
    " ",
    "NA",
    "inf",
    "1e999",
    "-",
    "x" * 5_000,
    "9" * 400,
    "true",
    "2024-02-30",
    "31/12/2024",
    "1,234",
    "$5",
    "7 %",
    "12:61",
]


def mutated_table(rng, text):
    for _ in range(rng.integers(1, 3)):
        at, kind = int(rng.integers(len(text) + 1)), rng.integers(5)
        lines = text.split("\n")
        line = int(rng.integers(len(lines)))
        if kind == 0:
            text = text[:at] + PIECES[rng.integers(len(PIECES))] + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + int(rng.integers(1, 30)) :]
        elif kind == 2:
            text = "\n".join(lines[:line] + [lines[line]] * int(rng.integers(2, 5)) + lines[line + 1 :])
        elif kind == 3:
            cells = lines[line].split(",")
            cells[int(rng.integers(len(cells)))] = PIECES[rng.integers(len(PIECES))]
            text = "\n".join([*lines[:line], ",".join(cells), *lines[line + 1 :]])
        else:
            text = text.replace(str(rng.choice([",", "\n", ".", "a"])), str(rng.choice([";", "\r\n", ",", "b"])))
    return text.encode(str(rng.choice(["utf-8", "utf-8", "utf-8", "latin-1", "utf-16"])), errors="replace")


def encoding_of(path):
    """UTF-16 by its mark, UTF-8, or else that of Western Europe."""
    data = path.read_bytes()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8-sig"


def rows_of(path, delimiter, output=""):
    """The rows behind the header, read by an independent reader; ``output`` may say that there are titles and units."""
    said = int((re.search(r"Above the header, (\d+) line", output) or [0, "0"])[1])
    with path.open(encoding=encoding_of(path), newline="") as file:
        rows = [row for row in csv.reader(file, delimiter=delimiter, strict=True) if row or said]
    return [row for row in rows[said:] if row][1 + ("as a row of units" in output) :]


def test_no_table_is_misread(model_files, tmp_path):
    """Fitting and scoring end in a result with every row, or in a message."""
    text = (model_files / "data.csv").read_text()

    def case(rng, folder):
        path, out = folder / "data.csv", folder / "out.csv"
        path.write_bytes(mutated_table(rng, text))
        output, fitted = command("fit", path, "--out", folder / "m.rk")
        delimiter = max(",;\t|", key=lambda mark: len(rows_of_first(path, mark))) if fitted else ","
        if fitted:
            count = int(re.search(r"rows +([\d,]+) target", output)[1].replace(",", ""))
            assert count == len(rows_of(path, delimiter, output)), "rows were lost at fit"
        said, scored = command("score", model_files / "table.rk", path, "--out", out, "--keep-formulas")
        if scored:
            before, after = rows_of(path, delimiter_of(path), said), rows_of(out, delimiter_of(out))
            assert [row[: len(old)] for row, old in zip(after, before, strict=True)] == before, "cells were changed"
        return "fitted and scored" if fitted and scored else "fitted" if fitted else "scored" if scored else "refused"

    run_all("tables", case, TABLES, tmp_path)


def real_rows(n=24, seed=0):
    """What real tables hold: numbers, prices, shares, categories, dates, truth values, empty cells."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n).round(4),
            "price": [f"${value:,}" for value in rng.integers(1, 90_000, n)],
            "share": [f"{value} %" for value in rng.integers(0, 100, n)],
            "kind": rng.choice(["x", "y", "z"], n),
            "when": (pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**7, n), unit="s")).astype(str),
            "ok": rng.choice(["True", "False"], n),
        }
    )
    frame.loc[rng.random(n) < 0.2, "a"] = np.nan
    return frame


def test_no_real_table_is_misread(model_files, tmp_path):
    """The same for tables of every kind of column."""
    text = real_rows().to_csv(index=False)

    def case(rng, folder):
        path, out = folder / "data.csv", folder / "out.csv"
        path.write_bytes(mutated_table(rng, text))
        fitted = command("fit", path, "--out", folder / "m.rk")[1]
        said, scored = command("score", folder / "m.rk", path, "--out", out, "--keep-formulas") if fitted else ("", False)
        if scored:
            before, after = rows_of(path, delimiter_of(path), said), rows_of(out, delimiter_of(out))
            assert [row[: len(old)] for row, old in zip(after, before, strict=True)] == before, "cells were changed"
        return "fitted and scored" if scored else "fitted" if fitted else "refused"

    run_all("real tables", case, TABLES, tmp_path)


CELLS_OF_ANY_TYPE = [
    None,
    "",
    "x",
    0,
    -1,
    2**60,
    1.5,
    float("nan"),
    float("inf"),
    True,
    pd.Timestamp("2024-05-06 07:08"),
    "=1+1",
    "\x1b[2J",
    b"b",
]


def mutated_frame(rng, frame):
    """Cells, columns and types changed."""
    frame = frame.astype(object)
    for _ in range(rng.integers(1, 4)):
        kind, column = rng.integers(5), int(rng.integers(frame.shape[1]))
        value = CELLS_OF_ANY_TYPE[rng.integers(len(CELLS_OF_ANY_TYPE))]
        if kind == 0:
            frame.iloc[int(rng.integers(len(frame))), column] = value
        elif kind == 1:
            frame.iloc[:, column] = [value] * len(frame)
        elif kind == 2:
            frame = frame.rename(columns={frame.columns[column]: str(rng.choice(["", "a", "self", "score", "kind", "=x"]))})
        elif kind == 3:
            frame.iloc[int(rng.integers(len(frame))), :] = value
        else:
            frame = frame.iloc[: int(rng.integers(1, len(frame) + 1))].copy()
    return frame


def broken(rng, path):
    """Some bytes of a file changed, or its end cut off."""
    data = bytearray(path.read_bytes())
    if rng.random() < 0.5:
        data = data[: int(rng.integers(1, len(data)))]
    for _ in range(rng.integers(0, 6)):
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("ending", ["parquet", "xlsx"])
def test_no_typed_table_is_misread(ending, model_files, tmp_path):
    """Parquet files and workbooks: fitted and scored with every row, or refused with a message."""
    pytest.importorskip("pyarrow" if ending == "parquet" else "openpyxl")
    frame = real_rows().assign(when=lambda rows: pd.to_datetime(rows["when"]), ok=lambda rows: rows["ok"] == "True")
    write = {"parquet": pd.DataFrame.to_parquet, "xlsx": pd.DataFrame.to_excel}[ending]

    def case(rng, folder):
        path, out, changed = folder / f"data.{ending}", folder / "out.csv", mutated_frame(rng, frame)
        try:
            write(changed if rng.random() < 0.9 else frame, path, index=False)
        except Exception:  # not every frame can be written: the table as it is
            changed = frame
            write(frame, path, index=False)
        is_broken = rng.random() < 0.4
        if is_broken:
            broken(rng, path)
        fitted = command("fit", path, "--out", folder / "m.rk")[1]
        score = ("score", folder / "m.rk", path, "--out", out, "--keep-formulas", "--prefix", "new_")
        output, scored = command(*score) if fitted else ("", False)
        if scored and not is_broken:
            expected = len(pd.read_parquet(path)) if ending == "parquet" else len(pd.read_excel(path, na_values=[], keep_default_na=False))
            found = len(rows_of(out, ","))
            said = int((re.search(r"([\d,]+) empty row", output) or [0, "0"])[1])
            assert found + said == expected, f"{expected} rows, and {found} were written"
        return "fitted and scored" if scored else "fitted" if fitted else "refused"

    run_all(ending, case, TYPED_TABLES, tmp_path)


def rows_of_first(path, mark):
    with path.open(encoding=encoding_of(path), newline="") as file:
        return next((row for row in csv.reader(file, delimiter=mark) if row), [])


def delimiter_of(path):
    return max(",;\t|", key=lambda mark: len(rows_of_first(path, mark)))


# Inputs of the library

CELLS = [0.0, 1.0, -1.0, 1e-300, 1e300, 1e154, -1e16, 3.0, np.nan, np.inf, -np.inf]


def random_input(rng):
    """A small array of any kind: numbers of any size, NaN, constants, no rows, no columns, integers, objects, sparse, one or three axes."""
    n, d = int(rng.choice([0, 1, 2, 3, 10, 10, 40, 40])), int(rng.choice([0, 1, 2, 3, 3, 8]))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4)
    kind = rng.integers(12)
    if kind == 0 and X.size:
        X[rng.integers(n), rng.integers(d)] = rng.choice(CELLS)
    elif kind == 1:
        X = rng.choice(CELLS[:8], size=(n, d))
    elif kind == 2:
        X[:] = rng.choice(CELLS[:8])
    elif kind == 3:
        X = rng.integers(-3, 4, size=(n, d))
    elif kind == 4:
        X = X.astype(object)
        if X.size:
            X[0, 0] = rng.choice(np.array([None, "x", "1.5", 2], dtype=object))
    elif kind == 5:
        X = sp.csr_array(X * (X > 0)) if rng.random() < 0.5 else sp.coo_matrix(X * (X > 0))
    elif kind == 6:
        X = X.astype(np.float32)
    elif kind == 7:
        X = X.ravel() if rng.random() < 0.5 else X[..., None]
    elif kind == 8:
        X = X * 10.0 ** rng.integers(-160, 161)
    elif kind == 9:
        X = pd.DataFrame(X, columns=[f"c{i % 3}" for i in range(d)])
    elif kind == 10:
        X = X + 1j if rng.random() < 0.3 else X.tolist()
    return X


def random_estimator(rng):
    kernels = ["rbf", "linear", rk.RBF(scale=0.01), rk.kernels.Laplacian(), rk.kernels.Polynomial(), "cosine", "precomputed"]
    references = ["training", "subset", "normal", "case5", "case7", "kmeans", "farthest", "uniform"]
    kernel, chosen = kernels[rng.integers(len(kernels))], references[rng.integers(len(references))]
    reference = rk.ReferenceKernel(references=chosen, center=bool(rng.integers(2)), random_state=0)
    nu = rng.choice([0.1, 0.1, 0.3, 0.5, 1.0, 1e-6, 0.0])
    made = [
        lambda: rk.SVDD(kernel, nu=nu),
        lambda: rk.SVDD(kernel, C=rng.choice([0.01, 1.0, 1e6, -1.0])),
        lambda: rk.SVDD(reference, nu=nu),
        lambda: rk.SVDD(negatives="repel"),
        lambda: rk.OneClassSVM(kernel, nu=nu),
        lambda: rk.OneClassSVM(reference, nu=nu),
        lambda: rk.ESVDD(nu=nu),
        lambda: rk.ReferenceResidual(references=chosen, nu=nu, random_state=0),
        lambda: make_pipeline(rk.TargetScaler(), rk.ReferenceMap(references=chosen, random_state=0), rk.SVDD("linear")),
        lambda: make_pipeline(rk.TargetImputer(), rk.NPT(), rk.OneClassSVM("linear")),
        lambda: rk.OneClassGridSearch(rk.SVDD(), {"nu": [0.1, 0.5]}, cv=2, random_state=0),
        lambda: rk.AutoDetector(rng.choice([0.05, 0.3]), contamination=rng.choice([0.0, 0.1])),
        lambda: rk.ConformalDetector(rk.SVDD(kernel), 0.2, method=str(rng.choice(["loo", "cv", "split"])), random_state=0),
    ]
    return made[rng.integers(len(made))]()


def random_labels(rng, X):
    n = len(X) if hasattr(X, "__len__") and not sp.issparse(X) else X.shape[0]
    kinds = [
        None,
        None,
        None,
        np.ones(n),
        rng.choice([-1, 1], size=n),
        rng.choice([-1, 1], size=n + 1),
        -np.ones(n),
        np.full(n, np.nan),
        rng.choice([0, 1], size=n),
    ]
    return kinds[rng.integers(len(kinds))]


def test_no_input_does_harm(model_files, tmp_path):
    """fit, predict and decision_function of every public estimator: labels of -1 and 1 for each row, or a documented error."""
    X, y = frame_of().to_numpy(), np.r_[np.ones(18), -np.ones(6)]
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        for seed in range(60):  # compiled here once, and not in every process
            documented(lambda seed=seed: random_estimator(np.random.default_rng(seed)).fit(X, y).predict(X))

    def case(rng, folder):
        X, estimator = random_input(rng), random_estimator(rng)
        fitted = documented(lambda: estimator.fit(X, random_labels(rng, X)))
        if fitted is None:
            return "refused"
        Z = X if rng.random() < 0.5 else random_input(rng)
        labels, decision = documented(lambda: fitted.predict(Z)), documented(lambda: fitted.decision_function(Z))
        if labels is not None:
            assert set(np.unique(labels)) <= {-1, 1}
            assert len(labels) == (Z.shape[0] if hasattr(Z, "shape") else len(Z))
        assert decision is None or not np.isnan(decision).any(), "NaN out of finite numbers"
        return "fitted and refused" if labels is None else "fitted and predicted"

    run_all("inputs", case, INPUTS, tmp_path)
