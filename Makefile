# Hearth's one-word commands. `make help` lists them.
# Assumed on the machine: make, and Python 3.11 or 3.12 with venv. Everything else is locked, Node too where it is old.
# That is for development: the wheel (make wheel) runs on 3.11 to 3.14.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# A python3 outside 3.11-3.12 gives way to python3.12 or python3.11: ape wants numpy 1.x, whose wheels end there.
FITS := import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))
PYTHON ?= $(shell for p in python3 python3.12 python3.11; do \
	command -v $$p >/dev/null 2>&1 && $$p -c '$(FITS)' >/dev/null 2>&1 && { echo $$p; break; }; done)
UV ?= uv

VENV := $(CURDIR)/.venv
PY := $(VENV)/bin/python
FORMAT_VENV := $(CURDIR)/.venv-format
MAMUSHI := $(FORMAT_VENV)/bin/mamushi --line-length 120
# Where the machine's Node is missing or older than 22.12, one from a locked wheel takes its place.
NODE_VENV := $(CURDIR)/.venv-node
NODE_FITS := $(shell node -e 'const [a, b] = process.versions.node.split("."); process.exit(a < 22 || (a == 22 && b < 12) ? 1 : 0)' 2>/dev/null && \
	command -v npm >/dev/null && echo yes)
NODE_STAMP := $(if $(NODE_FITS),,.venv-node/.stamp)
# anvil comes by npm, and older ones will do for it.
ANVIL_NODE_STAMP := $(if $(shell node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' 2>/dev/null && command -v npm),,$(NODE_STAMP))
# ape-vyper looks for the vyper program on PATH; nothing else is picked up from the user's own site.
export PATH := $(VENV)/bin:$(if $(NODE_FITS),,$(NODE_VENV)/bin:)$(PATH)
export PYTHONNOUSERSITE := 1
unexport PYTHONPATH
# Some machines forbid it: then each of a thousand processes that the tests start compiles the project anew.
unexport PYTHONDONTWRITEBYTECODE

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
# Of `make chaos` and `make soak`: kills for each point and runtime, reorgs, minutes, and where the records go.
ROUNDS ?= 5
REORGS ?= 64
MINUTES ?= 10
ifndef SEED
SEED := $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')
endif
CHAOS ?= .build/chaos.jsonl

.PHONY: help setup deep check lint types rooms prose contracts-format contracts-bytes contracts-forms lanes-check reasons-check alerts alerts-check generated \
	web web-check web-tables web-tables-check web-types artifacts-check schemas-check clear-signing clear-signing-check test demo fuzz fuzz-parsers walk abuse mutants mutants-check mutate wheel bench bench-gas \
	bench-forks bench-gpu-look bench-rate bench-smallest-job chaos slow-page soak test-docker lanes reasons artifacts schemas lock lock-check \
	format clean \
	services-up services-down

help: ## list the commands
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

# ---- set-up: each stamp is newer than the locks it was made from; a line a step, ended by the folder's size ----

BEGIN := printf 'set-up: %s ... '
SIZE = du -sh $(1) | cut -f 1

setup: .venv/.stamp-project node_modules/.stamp hearth/web/app.cid .venv-format/.stamp ## everything the other commands need

.venv/.stamp-venv:
	@test -n "$(PYTHON)" || { echo "this needs Python 3.11 or 3.12 with venv (Debian: apt-get install python3-venv);" \
		"name one with PYTHON=..." >&2; exit 3; }
	@$(BEGIN) ".venv with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv .venv
	@$(call SIZE,.venv)
	@touch $@

define NPM_CI
	@npm ci $(1) --ignore-scripts --no-progress --loglevel=error >/dev/null
	@test -x node_modules/.bin/anvil || { echo "npm left out anvil: its package has none for this platform" >&2; exit 3; }
	@$(call SIZE,node_modules)
	@touch $@
endef

# $(1) is a lock: of users, or of development, which has theirs and holds a few of them back.
define PACKAGES
	@$(BEGIN) "$$(grep -c '^[a-z]' $(1)) Python packages into .venv"
	@$(PY) -m pip download $(PIP_LOCKED) --only-binary :all: --dest $(WHEELS) -r requirements-build.lock
	@$(PY) -m pip install $(PIP_LOCKED) --no-index --find-links $(WHEELS) -r requirements-build.lock
	@$(PY) -m pip install $(PIP_LOCKED) --no-build-isolation --only-binary :all: --no-binary $(SDIST_ONLY) -r $(1)
	@$(call SIZE,.venv)
	@touch $@
endef

# Isolated, because setuptools reads our licence field with a newer packaging than ape allows in the environment.
define PROJECT
	@$(BEGIN) "Hearth itself into .venv"
	@$(PY) -m pip install $(PIP_QUIET) --no-deps --no-index --find-links $(WHEELS) --editable .
	@$(call SIZE,.venv)
	@touch $@
endef

.venv/.stamp-deps: requirements-build.lock requirements-dev.lock | .venv/.stamp-venv
	$(call PACKAGES,requirements-dev.lock)

.venv/.stamp-project: pyproject.toml setup.py .venv/.stamp-deps
	$(PROJECT)

# What `make demo` needs, and no more, where nothing else was set up before.
.venv/.stamp-users-deps: requirements-build.lock requirements.lock | .venv/.stamp-venv
	$(call PACKAGES,requirements.lock)

.venv/.stamp-users: pyproject.toml setup.py .venv/.stamp-users-deps
	$(PROJECT)

node_modules/.stamp-anvil: package.json package-lock.json .npmrc $(ANVIL_NODE_STAMP)
	@$(BEGIN) "anvil into node_modules"
	$(call NPM_CI,--omit=dev)

DEMO_STAMPS := $(if $(wildcard .venv/.stamp-project),.venv/.stamp-project,.venv/.stamp-users) \
	$(if $(wildcard node_modules/.stamp),node_modules/.stamp,node_modules/.stamp-anvil)

.venv-format/.stamp: requirements-format.lock | .venv/.stamp-venv
	@$(BEGIN) "the Vyper formatter into .venv-format"
	@$(PY) -m venv .venv-format
	@$(FORMAT_VENV)/bin/python -m pip install $(PIP_LOCKED) --only-binary :all: -r requirements-format.lock
	@$(call SIZE,.venv-format)
	@touch $@

.venv-node/.stamp: requirements-node.lock | .venv/.stamp-venv
	@$(BEGIN) "Node into .venv-node"
	@$(PY) -m venv .venv-node
	@$(NODE_VENV)/bin/python -m pip install $(PIP_LOCKED) --only-binary :all: -r requirements-node.lock
	@$(call SIZE,.venv-node)
	@touch $@

node_modules/.stamp: package.json package-lock.json .npmrc $(NODE_STAMP)
	@$(BEGIN) "anvil, the UnixFS oracle and a wallet's page provider into node_modules"
	$(call NPM_CI)

# The page's tools; what it runs with in a browser is built into hearth/web/app and needs none of them.
web/node_modules/.stamp: web/package.json web/package-lock.json web/.npmrc $(NODE_STAMP)
	@$(BEGIN) "the page's compiler, bundler and test runner into web/node_modules"
	@cd web && npm ci --ignore-scripts --no-progress --loglevel=error >/dev/null
	@$(call SIZE,web/node_modules)
	@touch $@

# Built from the locked tools and the sources alone: who builds it gets the same bytes, and the same CID.
WEB_SOURCES := web/package-lock.json web/vite.config.ts web/index.html tools/build_web.py $(shell find web/src -type f)
hearth/web/app.cid: $(WEB_SOURCES) web/node_modules/.stamp .venv/.stamp-project
	@$(BEGIN) "the page into hearth/web/app"
	@$(PY) -m tools.build_web

# ---- checks ----

check: lint types rooms prose contracts-format contracts-bytes contracts-forms lanes-check ## every static check
check: mutants-check reasons-check alerts-check artifacts-check schemas-check clear-signing-check web-tables-check web-types web-check

lint: .venv/.stamp-project
	$(PY) -m ruff check --quiet .
	$(PY) -m ruff format --check --quiet .

types: .venv/.stamp-project
	$(PY) -m mypy

rooms: .venv/.stamp-project
	$(PY) -m tools.check_rooms
	$(PY) -m tools.shape

prose: .venv/.stamp-project ## sentence lengths and words of the pages that people read first
	$(PY) -m tools.prose

contracts-format: .venv-format/.stamp
	@test -z "$(VYPER_FILES)" || $(MAMUSHI) --check $(VYPER_FILES)

contracts-bytes: .venv/.stamp-project
	$(PY) -m tools.check_bytes contracts

contracts-forms: .venv/.stamp-project
	$(PY) -m tools.check_vyper contracts

lanes-check: .venv/.stamp-project
	$(PY) -m tools.lanes --check

alerts-check: .venv/.stamp-project
	$(PY) -m tools.alerts --check

reasons-check: .venv/.stamp-project
	$(PY) -m tools.reasons --check

mutants-check: .venv/.stamp-project
	$(PY) -m tools.mutants --check

web-tables-check: .venv/.stamp-project
	$(PY) -m tools.web_tables --check

web-types: web/node_modules/.stamp
	cd web && node node_modules/typescript/bin/tsc --noEmit

web-check: hearth/web/app.cid
	$(PY) -m tools.build_web --check

artifacts-check: .venv/.stamp-project
	$(PY) -m tools.build_artifacts --check

schemas-check: .venv/.stamp-project
	$(PY) -m tools.schemas --check

clear-signing-check: .venv/.stamp-project
	$(PY) -m tools.clear_signing --check

# ---- tests ----

# Groups (tests/conftest.py): what talks to a shared service runs on one worker, one test after the other. Six workers
# for two cores, because a market of processes mostly waits for blocks; with more, processes wait for a core and are late.
test: .venv/.stamp-project node_modules/.stamp hearth/web/app.cid ## each thing proven once, on the real parts
	$(PYTEST) -m "not deep" -n 6 --dist loadgroup --no-loadscope-reorder $(PYTEST_ARGS)

# Hours. In the order in which a bug is likeliest to show.
deep: .venv/.stamp-project node_modules/.stamp hearth/web/app.cid ## what `make test` leaves out: second ways, faults, long runs
	$(PYTEST) -m deep -n 6 --dist loadgroup --no-loadscope-reorder $(PYTEST_ARGS)
	$(MAKE) --no-print-directory test-docker slow-page chaos soak fuzz mutants

fuzz: .venv/.stamp-project node_modules/.stamp ## property tests, state machines and parsers, many examples, a new seed
	@echo "fuzz: to repeat: make fuzz FUZZ_SEED=$(FUZZ_SEED)"
	$(MAKE) --no-print-directory fuzz-parsers FUZZ_SEED=$(FUZZ_SEED)
	export HEARTH_HYPOTHESIS=fuzz; $(PYTEST) -m "hypothesis or stateful" -n 2 --dist loadgroup --timeout 14400 \
		--hypothesis-seed=$(FUZZ_SEED) $(PYTEST_ARGS)

WALK ?= 500000
walk: .venv/.stamp-project node_modules/.stamp ## the market's machine for WALK=500000 steps on each asset, resumable
	$(PY) -m tests.stateful.walk --steps $(WALK) --seed $(or $(WALK_SEED),1)

# atheris takes the project's own packages beside it; it is installed here alone, never by `make setup`.
ATHERIS := .build/atheris
$(ATHERIS)/.stamp: requirements-fuzz.lock .venv/.stamp-project
	@rm -rf $(ATHERIS)
	@$(PY) -m pip install $(PIP_LOCKED) --only-binary :all: --target $(ATHERIS) -r requirements-fuzz.lock
	@touch $@

RUNS ?= 100000
fuzz-parsers: $(ATHERIS)/.stamp ## parsers of strangers' bytes, with coverage: RUNS inputs each, or FUZZ="--record"
	@echo "fuzz-parsers: to repeat: make fuzz-parsers RUNS=$(RUNS) FUZZ_SEED=$(FUZZ_SEED)"
	PYTHONPATH=$(CURDIR):$(CURDIR)/$(ATHERIS) $(PY) -m tests.fuzz --runs $(RUNS) --seed $(FUZZ_SEED) $(FUZZ)

# The first line on the engine as it is, by root; the second on one with user namespaces, in gVisor, and by a plain user.
test-docker: .venv/.stamp-project ## every test of containers: as root and as a plain user, with user namespaces, in gVisor
	$(PYTEST) -m docker tests/worker $(PYTEST_ARGS)
	export HEARTH_ENGINES=full; $(PYTEST) tests/worker/runtimes/test_engines.py --timeout 1800 $(PYTEST_ARGS)

chaos: .venv/.stamp-project node_modules/.stamp ## kill, starve and cut off real processes
	export HEARTH_CHAOS=full; $(PYTEST) tests/chaos --timeout 7200 $(PYTEST_ARGS)
	$(WITH_SERVICES) $(PY) -m tests.chaos.campaign kill --rounds $(ROUNDS) --seed $(SEED) --out $(CHAOS)
	$(WITH_SERVICES) $(PY) -m tests.chaos.campaign engine --rounds $(ROUNDS) --seed $(SEED) --out $(CHAOS)
	$(PY) -m tests.chaos.campaign rpc --minutes $(MINUTES) --seed $(SEED) --out $(CHAOS)
	$(PY) -m tests.chaos.campaign reorg --runs $(REORGS) --seed $(SEED) --out $(CHAOS)
	$(PY) -m tests.chaos.campaign summary $(CHAOS)

slow-page: .venv/.stamp-project node_modules/.stamp ## the page where its processor, its disk or its network is slow
	export HEARTH_REQUIRE=chromium; for slow in processor disk network; do \
		export HEARTH_SLOW_PAGE=$$slow; $(PYTEST) tests/e2e/test_web*.py tests/web -n 2 --dist loadgroup --timeout 1800 $(PYTEST_ARGS) \
			|| exit; done

soak: .venv/.stamp-project node_modules/.stamp ## a market under a fault every 20 seconds, MINUTES=10
	$(PY) -m tests.chaos.campaign soak --minutes $(MINUTES) --seed $(SEED) --out $(CHAOS)
	$(PY) -m tests.chaos.campaign summary $(CHAOS)

abuse: .venv/.stamp-project node_modules/.stamp ## abuse programs through a worker, and each without its defence
	$(PYTEST) tests/abuse -s $(PYTEST_ARGS)

mutants: .venv/.stamp-project node_modules/.stamp hearth/web/app.cid ## put each mutant into a copy: its tests must turn red
	$(WITH_SERVICES) $(PY) -m tools.mutants $(MUTANTS)

# A sample of a new seed, counted apart from the record of docs/ASSURANCE.md. It ends red where a mutant survives that
# tests/mutation/ does not explain.
COUNT ?= 200
OF ?= contracts
mutate: .venv/.stamp-project ## mutate OF=contracts or python by operators: COUNT mutants by chance, SEED=N to repeat
	@echo "mutate: to repeat: make mutate OF=$(OF) COUNT=$(COUNT) SEED=$(SEED)"
	$(PY) -m tools.mutate --of $(OF) --count $(COUNT) --seed $(SEED) --record .build/mutate/$(OF)-$(SEED).jsonl

# ---- runs ----

demo: $(DEMO_STAMPS) ## the market on a local chain, from post to paid
	$(WITH_SERVICES) $(VENV)/bin/hearth demo

bench: .venv/.stamp-project node_modules/.stamp ## keeper and matching figures into bench/results
	set -e; for name in $(filter-out bench_gas bench_forks,$(basename $(notdir $(wildcard bench/bench_*.py)))); do \
		$(PY) -m bench.$$name; done

bench-gas: .venv/.stamp-project node_modules/.stamp ## gas figures into bench/results/gas.json and docs/GAS.md
	$(PY) -m bench.bench_gas

bench-forks: .venv/.stamp-project node_modules/.stamp ## gas under Osaka's and Amsterdam's rules, on geth
	$(WITH_SERVICES) $(PY) -m bench.bench_forks

bench-gpu-look: .venv/.stamp-project ## what a look at GPUs costs, on the played driver of the service gpu
	$(WITH_SERVICES) $(PY) -m bench.gpu_look

bench-rate: .venv/.stamp-project node_modules/.stamp ## units a minute and RPC calls a block, into docs/PROVIDER.md
	$(PY) -m bench.bench_rate

bench-smallest-job: .venv/.stamp-project ## the smallest job that pays a keeper, into docs/KEEPER.md
	$(PY) -m bench.smallest_job --write

services-up: .venv/.stamp-project ## Docker engine, image registry, Kubo and geth on loopback, for the tests
	$(PY) -m tools.services up

services-down: .venv/.stamp-project
	$(PY) -m tools.services down

wheel: .venv/.stamp-project hearth/web/app.cid ## the package that users install, into dist/
	rm -rf build dist
	$(PY) -m pip wheel $(PIP_QUIET) --no-deps --no-index --find-links $(WHEELS) --wheel-dir dist .
	rm -rf build
	@ls -sh dist

# ---- upkeep ----

generated: .venv/.stamp-project ## all that is written from other files, each after what it reads; but for `make bench-gas`
	$(MAKE) --no-print-directory lanes reasons
	$(MAKE) --no-print-directory artifacts schemas clear-signing alerts
	@mkdir -p .build
	$(PY) -P -m hearth.jobfile schema > .build/job.schema.json
	cp .build/job.schema.json hearth/jobfile/job.schema.json
	$(MAKE) --no-print-directory web-tables
	$(PY) -m tests.web.vectors >/dev/null
	$(MAKE) --no-print-directory web

lanes: .venv/.stamp-project ## write packing.vy, the tables of docs/protocol.md and words.json from the lane table
	$(PY) -m tools.lanes

reasons: .venv/.stamp-project ## write reasons.vy and reason_texts.vy from the table of reasons
	$(PY) -m tools.reasons

alerts: .venv/.stamp-project ## write the tables of alerts of PROVIDER and KEEPER from docs/alerts.yml
	$(PY) -m tools.alerts

artifacts: .venv/.stamp-project ## compile contracts into hearth/market/artifacts
	$(PY) -m tools.build_artifacts

web: hearth/web/app.cid ## build the page into hearth/web/app where its sources have changed, and name its CID
	@cat $<

web-tables: .venv/.stamp-project ## write the library's tables for the page into web/src/generated
	$(PY) -m tools.web_tables

schemas: .venv/.stamp-project ## export the JSON Schemas of what --json prints into docs/schemas
	$(PY) -m tools.schemas

clear-signing: .venv/.stamp-project ## write what wallets show of a call (ERC-7730) into docs/erc7730
	$(PY) -m tools.clear_signing

format: .venv/.stamp-project .venv-format/.stamp ## rewrite Python and Vyper sources in the house format
	$(PY) -m ruff check --fix --quiet . || true
	$(PY) -m ruff format --quiet .
	@test -z "$(VYPER_FILES)" || $(MAMUSHI) $(VYPER_FILES)

LOCK = $(UV) pip compile --quiet --generate-hashes --no-header --no-annotate
# ape holds these back: an older one is in the lock for development than in the one for users. All else is the same.
HELD_BACK := base58|click|eth-typing|numpy
lock: ## resolve the lock files anew (needs uv and npm)
	$(LOCK) --python-version 3.11 pyproject.toml -o requirements.lock
	$(MAKE) --no-print-directory lock-check
	sed -nE '/^($(HELD_BACK))==/d; s/^([^ ]+==[^ ]+).*/\1/p' requirements.lock > .build/lock/same.txt
	$(LOCK) --python-version 3.11 pyproject.toml --extra dev -c .build/lock/same.txt -o requirements-dev.lock
	$(LOCK) --python-version 3.11 requirements-build.in -c requirements-dev.lock -o requirements-build.lock
	$(LOCK) --python-version 3.11 requirements-format.in -o requirements-format.lock
	$(LOCK) --python-version 3.11 requirements-fuzz.in -o requirements-fuzz.lock
	$(LOCK) --python-version 3.11 requirements-go.in -o requirements-go.lock
	$(LOCK) --python-version 3.11 requirements-node.in -o requirements-node.lock
	rm -rf .build/npm && mkdir -p .build/npm && cp package.json .npmrc .build/npm/
	cd .build/npm && npm install --package-lock-only --ignore-scripts --loglevel=error
	cd .build/npm && $(PYTHON) $(CURDIR)/tools/lock_npm.py
	cp .build/npm/package-lock.json .
	rm -rf .build/npm-web && mkdir -p .build/npm-web && cp web/package.json web/.npmrc .build/npm-web/
	cd .build/npm-web && npm install --package-lock-only --ignore-scripts --loglevel=error
	cp .build/npm-web/package-lock.json web/

# The same pins on every Python and platform, each as a wheel but for SDIST_ONLY.
lock-check: ## that what users install has a wheel on each Python and platform (needs uv)
	@mkdir -p .build/lock
	@set -e; for python in 3.11 3.12 3.13 3.14; do \
		for platform in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu aarch64-apple-darwin; do \
			$(LOCK) --python-version $$python --python-platform $$platform --only-binary :all: --no-binary varint \
				-c requirements.lock pyproject.toml -o .build/lock/$$python-$$platform.txt; \
			cmp requirements.lock .build/lock/$$python-$$platform.txt; \
			echo "Python $$python on $$platform: $$(grep -c '^[a-z]' requirements.lock) packages"; \
		done; \
	done

clean: ## remove what was built here; caches outside the clone stay
	rm -rf .venv .venv-format .venv-node node_modules web/node_modules .build .cache .hearth dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf *.egg-info
