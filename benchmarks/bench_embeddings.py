"""Anomalies in three kinds of embeddings: `python benchmarks/bench_embeddings.py [FOLDER]`.

Networks: tables `*.npz` with `X` and `y` (1: anomaly) in a folder, such as ADBench's CV_by_ResNet18 and NLP_by_BERT. Principal components:
30 of scikit-learn's digits, of which five are normal. Latent semantic analysis: the docstrings of SciPy's functions are normal, those of
pandas' are not; 100 dimensions, rows of length 1. Half of the normal rows train, and the embedding, too, learns from them alone. AUROC, and
the share of normal new rows that AutoDetector flags at a rate of 5 %; means over tables, or over three choices of normal digits and splits.
"""

import inspect
import sys
from pathlib import Path

import numpy as np
from sklearn.covariance import LedoitWolf
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import refkernel as rk


def measured(train, normal, anomalies):
    """AUROC of AutoDetector, as it is and with one unit, of two distances; and the share of normal rows that AutoDetector flags."""
    new, is_anomaly = np.vstack([normal, anomalies]), np.r_[np.zeros(len(normal)), np.ones(len(anomalies))]
    detector, one_unit = rk.AutoDetector(0.05).fit(train), rk.AutoDetector(0.05, units=np.full(train.shape[1], train.std())).fit(train)
    evidence = [
        -detector.score_samples(new),
        -one_unit.score_samples(new),
        NearestNeighbors(n_neighbors=1).fit(train).kneighbors(new)[0].ravel(),
        LedoitWolf().fit(train).mahalanobis(new),
    ]
    return [*(roc_auc_score(is_anomaly, found) for found in evidence), np.mean(detector.predict(normal) == -1)]


def networks(folder):
    for path in sorted(Path(folder).glob("*.npz")):
        with np.load(path) as table:
            X, y = np.asarray(table["X"], dtype=float), np.asarray(table["y"]).ravel()
        normal = np.random.default_rng(0).permutation(np.flatnonzero(y == 0))
        yield X[normal[::2]], X[normal[1::2]], X[y == 1]


def digits():
    pixels, digit = load_digits(return_X_y=True)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        is_normal = np.isin(digit, rng.permutation(10)[:5])
        normal = rng.permutation(np.flatnonzero(is_normal))
        embedding = PCA(30).fit(pixels[normal[::2]])
        yield tuple(map(embedding.transform, (pixels[normal[::2]], pixels[normal[1::2]], pixels[~is_normal])))


def docstrings(*modules):
    found = {inspect.getdoc(value) for module in modules for value in vars(module).values() if callable(value)}
    return np.array(sorted(text for text in found if text and len(text) > 200), dtype=object)


def texts():
    import pandas as pd
    import scipy.linalg
    import scipy.signal
    import scipy.special
    import scipy.stats

    own, others = docstrings(scipy.signal, scipy.stats, scipy.linalg, scipy.special), docstrings(pd, pd.DataFrame, pd.Series, pd.Index)
    for seed in range(3):
        normal = np.random.default_rng(seed).permutation(own)
        embedding = make_pipeline(TfidfVectorizer(min_df=2), TruncatedSVD(100, random_state=0), Normalizer()).fit(normal[::2])
        yield tuple(map(embedding.transform, (normal[::2], normal[1::2], others)))


if __name__ == "__main__":
    kinds = {"30 principal components of digits": digits(), "LSA of docstrings": texts()}
    if len(sys.argv) > 1:
        kinds = {"networks": networks(sys.argv[1])} | kinds
    print("| embedding | tables | AutoDetector | AutoDetector, one unit | kNN (k = 1) | Mahalanobis | normal rows flagged |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, tables in kinds.items():
        found = 100 * np.array([measured(*table) for table in tables])
        cells = " | ".join(f"{value:.1f}" for value in found.mean(axis=0))
        print(f"| {name} | {len(found)} | {cells} |", flush=True)
