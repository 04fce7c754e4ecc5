# Everything happens in a virtual environment of the project's own.
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin

# Contracts, registries, losses and documents: what most changes can break, in under two minutes.
QUICK = tests/data tests/selectors/test_top_k.py tests/selectors/test_not_finite.py tests/solvers/test_product.py \
	tests/test_losses.py tests/test_registries.py tests/test_extending.py \
	tests/test_loop.py tests/test_import.py tests/test_typing.py tests/test_public_face.py tests/test_readme.py

.PHONY: demo test quick check bench-check clean

demo: $(VENV)/.ready
	$(BIN)/python -m skpursuit demo

test: $(VENV)/.ready check
	$(BIN)/python -m pytest -q -n 2 -m "not slow" tests

quick: $(VENV)/.ready check
	$(BIN)/python -m pytest -q -n 2 -m "not slow" $(QUICK)

check: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Certified fits against exact BLAS, with floors under the ratios; on a quiet machine, about a minute.
bench-check: $(VENV)/.ready
	$(BIN)/python benchmarks/run.py certified --only gaussian --seeds 2

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"  # knows --group
	$(BIN)/python -m pip install --quiet -e ".[cli,audio,parquet,dask]" --group test
	touch $@

clean:
	rm -rf $(VENV) build dist
