PYTHON ?= python3
BIN := .venv/bin

.PHONY: reproduce test fuzz check bench clean

reproduce: .venv/all
	$(BIN)/refkernel reproduce --out results

test: .venv/test
	$(BIN)/python -m pytest -n 2 --dist loadfile

fuzz: .venv/test
	REFKERNEL_FUZZ=long $(BIN)/python -m pytest tests/fuzz -s -q

check: .venv/test .venv/check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.venv/%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@

bench: .venv/test
	$(BIN)/python benchmarks/bench_fit.py
	$(BIN)/python benchmarks/bench_search.py
	$(BIN)/python benchmarks/bench_paper.py
	$(BIN)/python benchmarks/bench_score.py

clean:
	rm -rf .venv
