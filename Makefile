# Every target sets up .venv by itself, once: it is made again only when what it is made from changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-slow soak lint dist bench bench-peers clean
.DEFAULT_GOAL := test

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Jumok needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(if $(wildcard $(READY)),,--clear) $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[train,baseline,dev]'
	@touch $@

demo: $(READY)
	$(BIN)/jumok demo

test: $(READY)
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not slow"

# What takes minutes, one test at a time because some measure; then new random examples for the tests that use them.
test-slow: $(READY)
	$(BIN)/python -m pytest -n 0 -m slow
	$(BIN)/python -m pytest -n auto --hypothesis-profile=explore -m "hypothesis and not slow"

soak: $(READY)
	PYTHONPATH=tests/cli $(BIN)/python tests/cli/soak.py

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# A wheel and an sdist, ready to be uploaded.
dist: $(READY)
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist

bench: $(READY)
	$(BIN)/python benchmarks/training_step.py

# With files of your own: make bench-peers ARGUMENTS="--data SOURCE TARGET --run RUN --file TEXT"
bench-peers: $(READY)
	$(BIN)/python benchmarks/peers.py $(ARGUMENTS)

clean:
	rm -rf $(VENV)
