PYTHON ?= python3
BIN := .venv/bin

.PHONY: test check bench clean

test: .venv/test
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: .venv/check
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

clean:
	rm -rf .venv
