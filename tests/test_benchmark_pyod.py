"""The benchmark's PyOD methods against PyOD itself."""

import numpy as np
import pytest

from refkernel.experiments.benchmark.methods import METHODS
from refkernel.experiments.benchmark.runner import measure
from refkernel.experiments.benchmark.tables import Table, make_split

pytest.importorskip("pyod", reason="PyOD is not installed (extra benchmark)")


def rows(seed, n, ties):
    rng = np.random.default_rng(seed)
    X = np.exp(0.5 * rng.normal(size=(n, 4))) * rng.choice([-1, 1], size=4)
    return X.round(1) if ties else X


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_row_scores_as_ecod_scores_it_alone(ties, seed):
    """Our scores of many rows are PyOD's of batches of one row."""
    method = METHODS["pyod-ecod"]
    model = method.make(0).fit(rows(seed, 60, ties))
    X = np.concatenate([rows(seed + 10, 20, ties), rows(seed + 20, 5, ties) * 4])
    alone = np.concatenate([model.decision_function(X[[i]]) for i in range(len(X))])
    np.testing.assert_allclose(-method.score(model, X), alone, rtol=1e-10)


@pytest.mark.parametrize("key", [key for key in METHODS if key.startswith("pyod-")])
def test_every_pyod_method_scores_and_decides_as_its_predict(key):
    """Accepted are the rows that PyOD's own predict calls 0 (for ECOD, which pools rows, row by row)."""
    method = METHODS[key]
    X = rows(0, 80, False)
    X[::8] *= 5
    split = make_split(Table(X, np.arange(80) % 8 == 0), 0)
    found = measure(method, split)
    model = method.make(0).fit(split.train)
    inside = np.array([model.predict(split.test[[i]])[0] == 0 for i in range(len(split.test))])
    assert found["accepted"] == inside[~split.is_outlier].mean()
    assert found["rejected"] == (~inside[split.is_outlier]).mean()
    assert found["auroc"] > 0.5
