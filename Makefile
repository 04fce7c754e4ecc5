# Everything happens in a virtual environment of the project's own.
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin

.PHONY: demo test check clean

demo: $(VENV)/.ready
	$(BIN)/python -m skpursuit demo

test: $(VENV)/.ready check
	$(BIN)/python -m pytest -q -n 2 -m "not slow" tests

check: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[cli,test]"
	touch $@

clean:
	rm -rf $(VENV) build dist
