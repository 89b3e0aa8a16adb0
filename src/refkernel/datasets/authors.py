"""The authors' files: found locally or downloaded, checked against their SHA-256, and parsed.

GitHub ``JenniRaitoharju/GeneralizedReferenceKernel`` (MIT licence), at a pinned commit.
"""

from __future__ import annotations

from functools import lru_cache
from io import BytesIO
from typing import NamedTuple

import numpy as np

from .._typing import StrPath
from .published import PublishedFiles

__all__ = ["Arrays", "read_split"]

COMMIT = "d647efbf5d205614a7f6dbefb5772bcd8cc14f99"
SHA256 = {
    "bankruptcy_targetclass_1.mat": "7dfabd3486ebf6e8a62240f2890aa371f509e3ae69f24d0a5a88efab55d5a046",
    "bankruptcy_targetclass_2.mat": "3be0fec53f947f0b763d7716e6383df6637acd333256b0f6f4221b2e7e5308bb",
    "happiness_targetclass_1.mat": "3fc518bf1c5a4b246b6e3364e4d5193776bb78fd0f39e18fd0d89a94ec892f1f",
    "happiness_targetclass_2.mat": "cc9243285ac73047f9cfb8eefd00357794a189f19a784d649cacd2f412540e42",
    "ionosphere_targetclass_1.mat": "7e6e7cb84dac9fbeb62c50b2e020d3285421022a0689d4a375f6115a7f0c8c58",
    "ionosphere_targetclass_2.mat": "3a2dd940d1e9de8b48339798e2c4441d08775de45c9fb5c3bb11dcffc6b4e90b",
    "iris_targetclass_1.mat": "48fe851b9673892a36b8db6a000306cd6434e2796607214353d63d174ca68e1c",
    "iris_targetclass_2.mat": "afbaf00c58212d3f038807ad8df6c5a1d72062709cda0430eafbdd0c3861b49f",
    "iris_targetclass_3.mat": "05465fd16c5ec8f360785858f08c636529db653d3239c559037b714e303668ea",
    "seeds_targetclass_1.mat": "d544fe918fb4a45c2f978b2c50fa80f4afc9500f2885ac0376e4d6ccd12676d5",
    "seeds_targetclass_2.mat": "77bbd59c6d3c7e1ee7546220c3044cc7df20fad1fe007f5b7fa8e97909a7cd75",
    "seeds_targetclass_3.mat": "86d1f31323cbfa0caa8719f7d0b47021fd92141ece938b81d94a59d300ee8d9b",
    "sonar_targetclass_1.mat": "b69dd06f17faff67aff1f4fb439455a61133e70dd8fdccd2f9bbef8ce0da9d3a",
    "sonar_targetclass_2.mat": "4895c2cfabba80b19e929fff8a5ab6383dd246fba4c5e79c4a65e9902de5d2b6",
}

FILES = PublishedFiles(
    what="The authors' splits",
    base_url=f"https://raw.githubusercontent.com/JenniRaitoharju/GeneralizedReferenceKernel/{COMMIT}/Datasets/",
    page=f"https://github.com/JenniRaitoharju/GeneralizedReferenceKernel/tree/{COMMIT}/Datasets",
    digests=SHA256,
    folder="authors",
    suffix=".mat",
)


class Arrays(NamedTuple):
    """One split as published, samples in rows, read-only."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def read_split(name: str, split: int, data_dir: StrPath | None = None) -> Arrays:
    """Split number ``split`` (from 0) of the file ``name``."""
    return _parse(FILES.content(name, data_dir))[split]


@lru_cache(maxsize=len(SHA256))
def _parse(content: bytes) -> tuple[Arrays, ...]:
    """All splits in a file."""
    from scipy.io import loadmat  # slow to import, and needed for these files only

    mat = loadmat(BytesIO(content))
    kinds = [mat[f"{kind}5sets"].ravel() for kind in ("traindata", "trainlabels", "testdata", "testlabels")]
    return tuple(
        Arrays(*map(_frozen, (X.T, y.ravel().astype(np.int64), Z.T, z.ravel().astype(np.int64)))) for X, y, Z, z in zip(*kinds, strict=True)
    )


def _frozen(a: np.ndarray) -> np.ndarray:
    a = np.ascontiguousarray(a)
    a.flags.writeable = False
    return a
