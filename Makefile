# Every target sets up what it needs; a second call is quick.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_VENV := bench/.venv
BENCH_STAMP := $(BENCH_VENV)/.installed
PIP_FLAGS := --quiet --disable-pip-version-check

.PHONY: help setup demo results test test-all torture lint bench docs lock clean

help:
	@echo "make demo      part of the paper's main table in 2 minutes: ours beside theirs, and a page"
	@echo "make results   the pages in docs/results/ from results/, and what was run since"
	@echo "make test      lint, types and the quick tests"
	@echo "make test-all  the same with the slow tests"
	@echo "make torture   20 minutes of kills, damage, full disks and malformed input"
	@echo "make bench     speed beside the released package (long: see bench/README.md)"
	@echo "make docs      the documentation site in site/, which opens without a network"
	@echo "make lock      renew requirements.lock from pyproject.toml"
	@echo "make clean     remove environments, caches and demo results"

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "feelgood needs Python 3.11 or newer: name one with 'make PYTHON=/path/to/python'."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP_FLAGS) --require-hashes -r requirements.lock
	$(BIN)/python -m pip install $(PIP_FLAGS) --no-deps --no-build-isolation -e .
	@touch $@

# The paper's seeds and rounds, with the agents that are quick there.
DEMO_AGENTS := lints,linucb,lmcts,plmcts,svrglmcts,malats,fglmcts
demo: $(STAMP)
	$(BIN)/feelgood reproduce main --testbed linear-20 --agents $(DEMO_AGENTS) \
		--store results-demo/store --page results-demo/page.html --force

# STORES: folders that studies have written; without any, the pages alone are written again.
STORES ?= $(wildcard studies/store)
results: $(STAMP)
	$(if $(STORES),$(BIN)/python -m showdown collect $(STORES))
	$(BIN)/python -m showdown pages

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# One worker a core. Each takes files from top to bottom, because a file's tests share fixtures and
# programs; one that has nothing left takes over half of what another still has.
PARALLEL := -n auto --dist worksteal

test: lint
	$(BIN)/python -m pytest $(PARALLEL)

# The slow ones, some of which compare timings, run one at a time.
test-all: test
	$(BIN)/python -m pytest -m slow

# TORTURE: kinds and options, such as 'calls --only 17'; see 'python -m torture --help'.
torture: $(STAMP)
	$(BIN)/python -m torture --minutes 20 $(TORTURE)

# The released package asks for far more than its linear agents use, hence --no-deps.
$(BENCH_STAMP): bench/requirements.txt bench/peer-requirements.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install $(PIP_FLAGS) -r bench/requirements.txt
	$(BENCH_VENV)/bin/python -m pip install $(PIP_FLAGS) --no-deps -r bench/peer-requirements.txt
	@touch $@

bench: $(STAMP) $(BENCH_STAMP)
	$(BIN)/python bench/speed.py $(BENCH_ARGS)

docs: $(STAMP)
	$(BIN)/python -m feelgood.cli.reference > docs/commands.md
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "The site is in site/: open site/index.html."

lock:
	$(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install $(PIP_FLAGS) uv
	.venv-lock/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy fewest --upgrade --extra dev \
		--generate-hashes --no-emit-index-url --no-emit-find-links \
		--custom-compile-command "make lock" --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) .venv-lock $(BENCH_VENV) results-demo build dist site
	rm -rf .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find src tests bench handbook showdown torture -type d -name __pycache__ -prune -exec rm -rf {} +
