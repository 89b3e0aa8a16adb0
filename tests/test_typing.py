"""What a type checker sees of the installed package."""

import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("mypy", reason="mypy is part of the extra check, which is not installed")

RIGHT = """
    from typing import assert_type

    import numpy as np
    import refkernel as rk

    X = np.zeros((10, 2))
    fitted = rk.ReferenceMap(rk.RBF(scale=2.0) + 0.1 * rk.kernels.Linear(), references="case2", random_state=0).fit(X)
    assert_type(fitted, rk.ReferenceMap)
    assert_type(fitted.transform([[0.0, 1.0]]), np.ndarray)
    assert_type(rk.ReferenceKernel(references=rk.references.KMeans(5) + X).fit(X, [1] * 10)(X), np.ndarray)
    assert_type(rk.TargetScaler().fit(X), rk.TargetScaler)
    assert_type(rk.ESVDD(nu=0.1).fit(X).predict(X), np.ndarray)
    assert_type(rk.SVDD().fit(X), rk.SVDD)
    assert_type(rk.SVDD(rk.RBF(gamma="scale"), C=0.5, negatives="repel").fit(X, [1] * 10).score_samples(X), np.ndarray)
    assert_type(rk.OneClassSVM("linear", nu=0.2).fit(X), rk.OneClassSVM)
    assert_type(rk.ReferenceResidual(rank=0.9).fit(X).decision_function(X), np.ndarray)
    assert_type(rk.AutoDetector().fit(X), rk.AutoDetector)
    assert_type(rk.AutoDetector(contamination="auto").fit(X).p_values([[0.0, 1.0]]), np.ndarray)
    assert_type(rk.ConformalDetector(rk.SVDD(), 0.1).fit(X).with_false_alarm_rate(0.2), rk.ConformalDetector)
    assert_type(rk.calibration.promise(99, 0.05).interval(), tuple[float, float])
    rk.pseudo_outliers.PermutedColumns() + rk.pseudo_outliers.Box(margin=0.2)
    assert_type(rk.OneClassGridSearch(rk.ESVDD(), {"nu": [0.1, 0.2]}).fit(X), rk.OneClassGridSearch)
    assert_type(rk.metrics.gmean_score([1, -1], [1, 1]), float)
    assert_type(rk.datasets.load_task("Seed2").X_train, np.ndarray)
    assert_type(rk.plot.SpectrumDisplay.from_estimator(fitted), rk.plot.SpectrumDisplay)
    rk.to_onnx(fitted)
    rk.explain(rk.SVDD().fit(X), X).sentences()[0][0].upper()
    rk.report(rk.TableDetector()).save("page.html").exists()
"""

WRONG = {
    "a number for a name": "rk.datasets.load_task(2)",
    "a name that does not exist": "rk.SVDDD()",
    "a text for a flag": 'rk.ReferenceMap(center="yes")',
    "a text for a number": 'rk.SVDD(nu="0.1")',
    "an option in place of a rate": "rk.AutoDetector(false_alarm_rate=None)",
    "a parameter that does not exist": "rk.references.Normal(width=2.0)",
    "a result that does not exist": "rk.metrics.gmean_score([1], [1]).mean",
}


@pytest.fixture
def checked(tmp_path):
    """checked(code): what mypy says about a consumer's file, in a folder of its own and with no settings."""

    def check(code):
        snippet = tmp_path / "snippet.py"
        snippet.write_text(textwrap.dedent(code))
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}", snippet.name]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False).stdout

    return check


def test_a_consumers_code_type_checks(checked):
    """Annotations are found (py.typed is installed), and are those of the objects that come back."""
    assert "Success" in checked(RIGHT)


def test_a_consumers_mistakes_are_found(checked):
    """One error for each wrong line, and no other."""
    lines = ["import refkernel as rk", *WRONG.values()]
    found = [line for line in checked("\n".join(lines)).splitlines() if ": error:" in line]
    assert [int(line.split(":")[1]) for line in found] == list(range(2, len(lines) + 1))
