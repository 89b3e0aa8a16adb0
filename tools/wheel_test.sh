#!/usr/bin/env bash
# Tests a wheel outside the source tree: with its base dependencies alone, then the whole suite with the extras.
# tools/wheel_test.sh [WHEEL]; without an argument the wheel is built first.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
given=${1:+$(realpath "$1")}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH
pip=(-m pip --quiet --disable-pip-version-check)

"${PYTHON:-python3}" -m venv "$work/venv"
python=$work/venv/bin/python
if [ -n "$given" ]; then
    cp "$given" "$work"
else
    "$python" "${pip[@]}" wheel --no-deps --wheel-dir "$work" "$root"
fi
wheel=$(echo "$work"/refkernel-*.whl)
cp -r "$root/tests" "$root/README.md" "$root/AGENTS.md" "$root/SECURITY.md" "$root/CONTRIBUTING.md" "$root/Makefile" "$root/.dockerignore" "$root/examples" "$root/docs" "$root/benchmarks" "$root/pyproject.toml" "$work"
cd "$work"

"$python" "${pip[@]}" install "$wheel"
"$python" - <<'SMOKE'
import numpy as np
import refkernel as rk

assert "site-packages" in rk.__file__, rk.__file__
X = np.random.default_rng(0).normal(size=(600, 3))
for model in (rk.SVDD(rk.ReferenceKernel(), nu=0.1), rk.OneClassSVM(rk.RBF(1.0), nu=0.1)):
    assert abs((model.fit(X).predict(X) == -1).mean() - 0.1) < 0.02
SMOKE
if message=$("$work/venv/bin/refkernel" --version 2>&1); then
    echo "refkernel ran without the packages of its extra: $message" >&2
    exit 1
fi
grep --quiet 'pip install "refkernel\[cli\]"' <<<"$message" || { echo "$message" >&2; exit 1; }

"$python" "${pip[@]}" install pytest pytest-xdist hypothesis
base=(kernels references negatives certificates metrics files)  # what the extras could hide; the whole suite follows
"$python" -m pytest -n 2 --dist loadfile -p no:cacheprovider $(printf 'tests/test_%s.py ' "${base[@]}")

"$python" "${pip[@]}" install "$wheel[test,check]"
"$python" -m pytest -n 2 --dist loadfile -p no:cacheprovider
