# Everything happens in a virtual environment of the project's own.
VENV ?= .venv
PYTHON ?= python3
BIN = $(VENV)/bin

# Contracts, registries, losses and documents: what most changes can break, in under two minutes.
QUICK_TESTS = tests/data tests/selectors/test_top_k.py tests/selectors/test_not_finite.py tests/solvers/test_product.py \
	tests/test_losses.py tests/test_registries.py tests/test_extending.py \
	tests/test_loop.py tests/test_import.py tests/test_typing.py tests/test_public_face.py tests/test_readme.py

.PHONY: demo test quick check docs bench bench-check figures pages dist clean

demo: $(VENV)/.ready
	$(BIN)/python -m skpursuit demo

test: $(VENV)/.ready check
	$(BIN)/python -m pytest -q -n 2 -m "not slow" tests

quick: $(VENV)/.ready check
	$(BIN)/python -m pytest -q -n 2 -m "not slow" $(QUICK_TESTS)

check: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The site in docs/_build/html: warnings and broken links are errors. The examples of the gallery run.
docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/links.py docs/_build/html

# Certified fits against exact BLAS, with floors under the ratios; on a quiet machine, about a minute.
bench-check: $(VENV)/.ready
	$(BIN)/python benchmarks/run.py certified --only gaussian --seeds 2

# The libraries of the field on one grid: docs/benchmarks.md. QUICK=1: a few small rows, into build/.
BENCH = $(VENV)-bench
bench: $(BENCH)/.ready$(QUICK)
	$(BENCH)/bin/python benchmarks/peers.py $(if $(QUICK),--quick --out build/benchmarks.csv)

# The group `bench` of pyproject.toml, so that one that does not install takes no other along. QUICK leaves two out.
PEERS = $(shell $(PYTHON) -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['dependency-groups']['bench'])")
$(BENCH)/.ready$(QUICK): pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BENCH)/bin/python -m pip install --quiet -e ".[cli,dask,parquet]"
	for peer in $(if $(QUICK),$(filter-out skglm skscope,$(PEERS)),$(PEERS)); do \
		$(BENCH)/bin/python -m pip install --quiet $$peer || echo "$$peer does not install here and is left out"; done
	touch $@

# Every figure of README and docs, measured anew: hours, on a quiet machine (a limit that is missed ends nothing). `make pages`
# writes what stands in docs/figures into the pages.
CASES = landing fits drop_in coder splice selectors certified audit guarantees greedy first_use files
RUN = env -u OPENBLAS_CORETYPE $(BENCH)/bin/python benchmarks/run.py
figures: $(BENCH)/.ready
	-for case in $(CASES); do $(RUN) $$case --write; done
	-$(RUN) text --repeats 1 --write
	-OMP_NUM_THREADS=2 $(RUN) threads --write
	-OMP_NUM_THREADS=2 $(RUN) selectors --write
	-$(RUN) defaults --only regression --repeats 1 --write
	-$(RUN) defaults --only classes --repeats 1 --write
	-$(RUN) defaults --only text --repeats 1 --seeds 6 --write
	-$(RUN) defaults --only multinomial --repeats 1 --seeds 10 --write
	-$(RUN) defaults --only "pure noise" --repeats 1 --seeds 40 --write
	-for seed in 21 22; do $(BENCH)/bin/python benchmarks/dask_faults.py kill --fits 30 --seed $$seed --write; done
	-for scene in lost memory beyond beside; do $(BENCH)/bin/python benchmarks/dask_faults.py $$scene --write; done
	-$(BENCH)/bin/python -m skpursuit demo > docs/figures/demo.txt
	$(MAKE) pages

pages: $(BENCH)/.ready
	$(BENCH)/bin/python docs/figures.py

# A wheel and an sdist in dist/, each installed into an environment of its own and tried outside this tree.
dist: $(VENV)/.ready
	rm -rf dist
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build
	$(BIN)/python -m build --outdir dist .
	for file in dist/*; do bash .ci/smoke $$file || exit 1; done

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"  # knows --group
	$(BIN)/python -m pip install --quiet -e ".[cli,audio,parquet,dask]" --group test
	touch $@

$(VENV)/.docs: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

clean:
	rm -rf $(VENV) $(BENCH) build dist docs/_build docs/gallery docs/api/generated
