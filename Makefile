# `make help` lists what there is. Every target sets up what it needs, once.

PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11 python,$(shell \
	$(name) -c 'import sys; sys.version_info >= (3, 11) and print("$(name)")' 2>/dev/null)))
BIN := .venv/bin
READY := .venv/.ready
SLOW_SECONDS ?= 600

# What `make eval` (quality) and `make bench` (cost) run, as far as it exists.
QUALITY := $(basename $(notdir $(wildcard evals/reviser.py evals/recall.py)))
COST := $(basename $(notdir $(wildcard evals/ingest.py evals/calls.py)))

.DEFAULT_GOAL := help
.PHONY: bench clean demo docs eval format help lint setup test test-all test-slow types

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv with the exact versions of constraints.txt

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up .venv (once; a minute or two) ..."
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt --editable '.[all,dev]'
	@touch $@

demo: $(READY) ## Show the whole path on a bundled conversation, offline
	@$(BIN)/remegraph demo

test: $(READY) ## Run the fast tests
	@$(BIN)/python -m pytest -m "not slow"

test-slow: $(READY) ## Run the slow tests for at most SLOW_SECONDS (600)
	@$(BIN)/python -m pytest -m slow --slow-seconds $(SLOW_SECONDS)

test-all: $(READY) ## Run all tests
	@$(BIN)/python -m pytest

lint: $(READY) ## Check style, format and the direction of imports
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/lint-imports --no-logo

types: $(READY) ## Check types of sources, tests and evals
	@$(BIN)/mypy src tests evals docs

format: $(READY) ## Format the code and repair what ruff can
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

eval: $(READY) ## Measure quality: reviser, recall
	@$(if $(QUALITY),set -e; for name in $(QUALITY); do $(BIN)/python -m evals $$name; done,$(BIN)/python -m evals)

bench: $(READY) ## Measure cost: messages per second, memory, model calls
	@$(if $(COST),set -e; for name in $(COST); do $(BIN)/python -m evals $$name; done,$(BIN)/python -m evals)

docs: $(READY) ## Write the drawings in the docs anew, and check the docs
	@$(BIN)/python docs/generate.py
	@$(BIN)/python -m pytest tests/docs tests/engine/test_drawings.py

clean: ## Remove .venv, caches and builds
	@rm -rf .venv .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	@find src tests evals -name __pycache__ -type d -prune -exec rm -rf {} +
