"""Looks into the archive and the wheel before they are published: what must be there, what must not, and how large they are.

python tools/dist_check.py dist
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

MOST = {".whl": 1_500_000, ".gz": 4_000_000}
"""Bytes. The embedded data are 200 kB; what is larger holds something by mistake."""

NEEDED = {
    ".whl": ("refkernel/__init__.py", "refkernel/py.typed", "refkernel/datasets/data/seeds.csv", "licenses/LICENSE", "entry_points.txt"),
    ".gz": (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CITATION.cff",
        "tests/test_docs.py",
        "docs/conf.py",
        "src/refkernel/py.typed",
    ),
}
UNWANTED = ("__pycache__", ".pyc", ".nbi", ".nbc", ".venv", "_build/", ".git/", ".ipynb")
EXTRAS_FOR_WORK = {"test", "check", "docs", "dist"}
"""Extras of developers, which pin versions; those of users have no upper bounds."""


def members(path: Path) -> list[str]:
    """The names of the files in an archive."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    with tarfile.open(path) as archive:
        return archive.getnames()


def problems(path: Path) -> list[str]:
    """What is wrong with one archive."""
    names, kind = members(path), path.suffix
    found = [f"{path.name} lacks {needed}" for needed in NEEDED[kind] if not any(name.endswith(needed) for name in names)]
    found += [f"{path.name} holds {name}" for name in names if any(part in name for part in UNWANTED)]
    if kind == ".whl":
        found += [f"{path.name} holds {name}" for name in names if not name.startswith("refkernel")]
        found += [f"{path.name} needs {bound}, an upper bound" for bound in upper_bounds(path)]
    if path.stat().st_size > MOST[kind]:
        found.append(f"{path.name} has {path.stat().st_size:,} bytes, more than {MOST[kind]:,}")
    return found


def upper_bounds(wheel: Path) -> list[str]:
    """Requirements of users that exclude future versions."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        needed = message_from_string(archive.read(name).decode()).get_all("Requires-Dist", [])
    of_users = [
        line for line in needed if not any(f"extra == '{extra}'" in line or f'extra == "{extra}"' in line for extra in EXTRAS_FOR_WORK)
    ]
    return [line for line in of_users if any(mark in line.partition(";")[0] for mark in ("<", "==", "~="))]


def main() -> int:
    """Print what is wrong, or what there is."""
    archives = sorted(Path(sys.argv[1]).iterdir())
    found = [problem for path in archives for problem in problems(path)]
    if {path.suffix for path in archives} != set(MOST):
        found.append(f"{sys.argv[1]} must hold one wheel and one archive of the sources, and holds {[path.name for path in archives]}")
    print("\n".join(found) if found else "\n".join(f"{p.name}: {len(members(p))} files, {p.stat().st_size:,} bytes" for p in archives))
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
