# Hearth's one-word commands. `make help` lists them.
# Assumed on the machine: make, and Python 3.11 or 3.12 with venv. Everything else is locked, Node too where it is old.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# A python3 outside 3.11-3.12 gives way to python3.12 or python3.11: numpy 1.x publishes wheels for no later one.
FITS := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))
PYTHON ?= $(shell for p in python3 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c '$(FITS)' >/dev/null 2>&1 && { echo $$p; break; }; done)
UV ?= uv

VENV := $(CURDIR)/.venv
PY := $(VENV)/bin/python
FORMAT_VENV := $(CURDIR)/.venv-format
MAMUSHI := $(FORMAT_VENV)/bin/mamushi --line-length 120
# Where the machine's Node is missing or older than 20, one from a locked wheel takes its place.
NODE_VENV := $(CURDIR)/.venv-node
NODE_FITS := $(shell node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null && \
	command -v npm >/dev/null && echo yes)
NODE_STAMP := $(if $(NODE_FITS),,.venv-node/.stamp)
# ape-vyper looks for the vyper program on PATH; nothing else is picked up from the user's own site.
export PATH := $(VENV)/bin:$(if $(NODE_FITS),,$(NODE_VENV)/bin:)$(PATH)
export PYTHONNOUSERSITE := 1
unexport PYTHONPATH

PIP_QUIET := --disable-pip-version-check --no-input --quiet
PIP_LOCKED := $(PIP_QUIET) --require-hashes
# The hash-checked build tools, kept as wheels: what is built here is built with these and with no download.
WHEELS := $(VENV)/build-wheels
# These publish no wheel; anything else that would have to be built is refused.
SDIST_ONLY := lazyasd,python-baseconv,varint
# The variables of `make services-up`, where it was called; without it the tests skip what is missing.
WITH_SERVICES := eval "$$($(PY) -m tools.services env)";
PYTEST := $(WITH_SERVICES) $(PY) -m pytest
VYPER_FILES = $(shell find contracts -name '*.vy' -o -name '*.vyi' | sort)
ifndef FUZZ_SEED
FUZZ_SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
endif

.PHONY: help setup check lint types rooms contracts-format contracts-bytes contracts-forms artifacts-check \
	schemas-check test demo fuzz planted bench bench-gas chaos artifacts schemas lock format clean services-up services-down

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

# ---- set-up: each stamp is newer than the locks it was made from ----

setup: .venv/.stamp-project node_modules/.stamp .venv-format/.stamp ## everything the other commands need

.venv/.stamp-venv:
	@test -n "$(PYTHON)" || { echo "Hearth needs Python 3.11 or 3.12 with venv (Debian: apt-get install python3-venv);" \
		"name one with PYTHON=..." >&2; exit 3; }
	$(PYTHON) -m venv .venv
	@touch $@

.venv/.stamp-deps: requirements-build.lock requirements-dev.lock | .venv/.stamp-venv
	$(PY) -m pip download $(PIP_LOCKED) --only-binary :all: --dest $(WHEELS) -r requirements-build.lock
	$(PY) -m pip install $(PIP_LOCKED) --no-index --find-links $(WHEELS) -r requirements-build.lock
	$(PY) -m pip install $(PIP_LOCKED) --no-build-isolation --only-binary :all: --no-binary $(SDIST_ONLY) \
		-r requirements-dev.lock
	@touch $@

# Isolated, because setuptools reads our licence field with a newer packaging than ape allows in the environment.
.venv/.stamp-project: pyproject.toml .venv/.stamp-deps
	$(PY) -m pip install $(PIP_QUIET) --no-deps --no-index --find-links $(WHEELS) --editable .
	@touch $@

.venv-format/.stamp: requirements-format.lock | .venv/.stamp-venv
	$(PY) -m venv .venv-format
	$(FORMAT_VENV)/bin/python -m pip install $(PIP_LOCKED) --only-binary :all: -r requirements-format.lock
	@touch $@

.venv-node/.stamp: requirements-node.lock | .venv/.stamp-venv
	$(PY) -m venv .venv-node
	$(NODE_VENV)/bin/python -m pip install $(PIP_LOCKED) --only-binary :all: -r requirements-node.lock
	@touch $@

node_modules/.stamp: package.json package-lock.json .npmrc $(NODE_STAMP)
	npm ci --ignore-scripts --no-progress --loglevel=error
	@test -x node_modules/.bin/anvil || { echo "npm left out anvil: its package has none for this platform" >&2; exit 3; }
	@touch $@

# ---- checks ----

check: lint types rooms contracts-format contracts-bytes contracts-forms artifacts-check schemas-check ## every static check

lint: .venv/.stamp-project
	$(PY) -m ruff check --quiet .
	$(PY) -m ruff format --check --quiet .

types: .venv/.stamp-project
	$(PY) -m mypy

rooms: .venv/.stamp-project
	$(PY) -m tools.check_rooms

contracts-format: .venv-format/.stamp
	@test -z "$(VYPER_FILES)" || $(MAMUSHI) --check $(VYPER_FILES)

contracts-bytes: .venv/.stamp-project
	$(PY) -m tools.check_bytes contracts

contracts-forms: .venv/.stamp-project
	$(PY) -m tools.check_vyper contracts

artifacts-check: .venv/.stamp-project
	$(PY) -m tools.build_artifacts --check

schemas-check: .venv/.stamp-project
	$(PY) -m tools.schemas --check

# ---- tests ----

# Groups (tests/conftest.py): what talks to shared services runs on one worker, one test after the other.
test: .venv/.stamp-project node_modules/.stamp ## every test
	$(PYTEST) -n 2 --dist loadgroup --no-loadscope-reorder $(PYTEST_ARGS)

fuzz: .venv/.stamp-project node_modules/.stamp ## property tests and state machines, many examples, a new seed
	@echo "fuzz: to repeat: make fuzz FUZZ_SEED=$(FUZZ_SEED)"
	export HEARTH_HYPOTHESIS=fuzz; $(PYTEST) -m "hypothesis or stateful" -n 2 --dist loadgroup --timeout 14400 \
		--hypothesis-seed=$(FUZZ_SEED) $(PYTEST_ARGS)

chaos: .venv/.stamp-project node_modules/.stamp ## kill, starve and cut off real processes
	export HEARTH_CHAOS=full; $(PYTEST) tests/chaos --timeout 7200 $(PYTEST_ARGS)

planted: .venv/.stamp-project node_modules/.stamp ## apply each planted bug to a copy: the suite must turn red
	$(WITH_SERVICES) $(PY) -m tools.planted $(PLANTED)

# ---- runs ----

demo: .venv/.stamp-project node_modules/.stamp ## the market on a local chain, from post to paid
	$(WITH_SERVICES) $(VENV)/bin/hearth demo

bench: .venv/.stamp-project node_modules/.stamp ## keeper and matching figures into bench/results
	set -e; for name in $(filter-out bench_gas,$(basename $(notdir $(wildcard bench/bench_*.py)))); do \
		$(PY) -m bench.$$name; done

bench-gas: .venv/.stamp-project node_modules/.stamp ## gas figures into bench/results/gas.json and docs/GAS.md
	$(PY) -m bench.bench_gas

services-up: .venv/.stamp-project ## Docker engine, image registry and Kubo on loopback, for the tests
	$(PY) -m tools.services up

services-down: .venv/.stamp-project
	$(PY) -m tools.services down

# ---- upkeep ----

artifacts: .venv/.stamp-project ## compile contracts into hearth/market/artifacts
	$(PY) -m tools.build_artifacts

schemas: .venv/.stamp-project ## export the JSON Schemas of what --json prints into docs/schemas
	$(PY) -m tools.schemas

format: .venv/.stamp-project .venv-format/.stamp ## rewrite Python and Vyper sources in the house format
	$(PY) -m ruff check --fix --quiet . || true
	$(PY) -m ruff format --quiet .
	@test -z "$(VYPER_FILES)" || $(MAMUSHI) $(VYPER_FILES)

LOCK = $(UV) pip compile --quiet --python-version 3.11 --generate-hashes --no-header --no-annotate
lock: ## resolve the lock files anew (needs uv and npm)
	$(LOCK) pyproject.toml --extra dev -o requirements-dev.lock
	$(LOCK) pyproject.toml -c requirements-dev.lock -o requirements.lock
	$(LOCK) requirements-build.in -c requirements-dev.lock -o requirements-build.lock
	$(LOCK) requirements-format.in -o requirements-format.lock
	$(LOCK) requirements-go.in -o requirements-go.lock
	$(LOCK) requirements-node.in -o requirements-node.lock
	rm -rf .build/npm && mkdir -p .build/npm && cp package.json .npmrc .build/npm/
	cd .build/npm && npm install --package-lock-only --ignore-scripts --loglevel=error
	cd .build/npm && $(PYTHON) $(CURDIR)/tools/lock_npm.py
	cp .build/npm/package-lock.json .

clean: ## remove what was built here; caches outside the clone stay
	rm -rf .venv .venv-format .venv-node node_modules .build .cache .hearth dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf *.egg-info
