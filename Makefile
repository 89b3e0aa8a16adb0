PYTHON ?= python3
BIN := .venv/bin
PYTEST := -m pytest -n 2 --dist loadfile

# What a processor may change: everything that computes, without pages, pictures and commands.
NUMERICAL := $(addprefix tests/test_,solver.py kernels.py references.py more_references.py feature_map.py one_class.py negatives.py \
	ellipsoid.py residual.py model_selection.py golden.py preprocessing.py metrics.py article_tables.py certificates.py \
	kernel_algebra.py leave_one_out.py auto.py gaussian.py)
# What reaches jitted code by the shortest way.
JITTED := $(addprefix tests/test_,solver.py kernels.py feature_map.py one_class.py negatives.py jit.py leave_one_out.py gaussian.py)
# As code ran in 2008: SSE only, in the compiled functions, in BLAS and in NumPy.
OLD_PROCESSOR = NUMBA_CPU_NAME=generic NUMBA_CPU_FEATURES= OPENBLAS_CORETYPE=Nehalem \
	NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python tools/cpu_features.py)"
# As on processors with AVX2 and no AVX-512: in the compiled functions, in BLAS and in NumPy.
AVX2 = NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx,+avx2,+fma OPENBLAS_CORETYPE=Haswell \
	NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python tools/cpu_features.py AVX512 X86_V4)"

.PHONY: reproduce test test-old-processor test-bounds oldest wheel-test promises fuzz check docs linkcheck-local dist bench bench-avx2 bench-other-processor clean

reproduce: .venv/all
	$(BIN)/refkernel reproduce --out results

test: .venv/test
	$(BIN)/python $(PYTEST)

test-old-processor: .venv/test
	$(OLD_PROCESSOR) $(BIN)/python $(PYTEST) $(NUMERICAL)

test-bounds: .venv/test
	NUMBA_BOUNDSCHECK=1 $(BIN)/python $(PYTEST) $(JITTED)

oldest:
	rm -rf .venv-oldest && $(PYTHON) -m venv .venv-oldest
	$(PYTHON) tools/oldest.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint .venv-oldest/constraints.txt --editable ".[test]"
	.venv-oldest/bin/python $(PYTEST)

wheel-test:
	PYTHON=$(PYTHON) tools/wheel_test.sh

promises: .venv/test
	$(BIN)/python tests/promises.py

fuzz: .venv/test
	REFKERNEL_FUZZ=long $(BIN)/python -m pytest tests/fuzz -s -q

check: .venv/test .venv/check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/docstrings.py
	$(BIN)/python -m pytest -q tests/test_typing.py

docs: .venv/docs
	MPLBACKEND=agg $(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --builder html docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

linkcheck-local: docs
	$(BIN)/python tools/local_links.py docs/_build/html

dist: .venv/dist
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tools/dist_check.py dist
	PYTHON=$(PYTHON) tools/wheel_test.sh dist/*.whl

.venv/%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@

bench: .venv/test
	$(BIN)/python benchmarks/processor.py
	$(BIN)/python benchmarks/bench_typed.py
	$(BIN)/python benchmarks/bench_first_call.py
	$(BIN)/python benchmarks/bench_fit.py
	$(BIN)/python benchmarks/bench_import.py
	$(BIN)/python benchmarks/bench_search.py
	$(BIN)/python benchmarks/bench_paper.py
	$(BIN)/python benchmarks/bench_paper.py --whole
	$(BIN)/python benchmarks/bench_score.py

bench-avx2: .venv/test
	$(AVX2) $(MAKE) bench

bench-other-processor: .venv/test
	NUMBA_CPU_NAME=generic OPENBLAS_CORETYPE=Haswell $(MAKE) bench

clean:
	rm -rf .venv .venv-oldest docs/_build docs/api docs/gallery
