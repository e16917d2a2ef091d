# `make demo` shows the game, `make help` lists the targets. Both need nothing but Python 3.11 or later.
# `make help` prints what stands behind ## in a target's line.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FITS = import sys; sys.version_info < (3, 11) and sys.exit("fairwall needs Python 3.11 or later, and this is %s: make clean, then \
	name one, as in make demo PYTHON=python3.12" % sys.version.split()[0])
# To compile all of what is installed takes as long as to install it, and most of it is never imported.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile

# Where the environment says to keep no compiled code, each of the tests' thousand processes would compile it all again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo help test check slow quick format postgres second-client browser lint bench site pythons proto lock supply clean

demo: $(VENV)/.installed ## play the reveal game (the default)
	$(BIN)/fairwall run demo

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-14s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

test: $(VENV)/.installed-all ## test every behaviour once, in minutes
	$(BIN)/python -m pytest -n auto --dist worksteal

check: $(VENV)/.installed-all ## test what `test` leaves out: more cases, some broken servers, the commands of every page
	$(BIN)/python -m pytest -n auto --dist worksteal -m "check and not slow"

# What both leave out, in twelve shards of minutes each: slow tests, with fresh examples of Hypothesis, and mutants of the
# code, which tell which changes no test notices. All shards are run by .ci/nightly: make slow SHARD=3/12
SHARD ?= 1/12

slow: $(VENV)/.installed-all ## test what takes long, one shard of twelve: make slow SHARD=3/12
	$(BIN)/python -m pytest -n auto --dist load --maxschedchunk 1 -m slow --shard $(SHARD) --hypothesis-profile=default
	$(BIN)/python scripts/mutants.py --shard $(SHARD) --jobs 2
	$(BIN)/python scripts/drawn_mutants.py --shard $(SHARD) --jobs 2

quick: $(VENV)/.installed-all ## test what concerns some files: make quick compliance/deployment/serve.py docs/serving.md
	$(BIN)/python scripts/quick.py $(filter-out $@,$(MAKECMDGOALS))
ifeq (quick,$(firstword $(MAKECMDGOALS)))
.PHONY: $(filter-out quick pyproject.toml,$(MAKECMDGOALS))
$(filter-out quick pyproject.toml,$(MAKECMDGOALS)): ; @:
endif

format: $(VENV)/.installed-all ## format the code, and mend what ruff can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

postgres: $(VENV)/.installed-all ## run a PostgreSQL server until Ctrl-C, for a ledger in a database; it prints its address
	$(BIN)/python scripts/postgres.py build/postgres

second-client: tests/second_client/node_modules/.package-lock.json ## install what tests of the JavaScript client need

# Without it, or without Chromium, these tests are skipped.
browser: tests/browser/node_modules/.package-lock.json ## install what tests of pages find faults of accessibility with

# Format, lint, types, import contracts, the protocol (lint, and generated code as checked in), and Kubernetes' manifests.
lint: $(VENV)/.installed-all proto/node_modules/.package-lock.json build/tools/.installed ## check format, types, imports and protocol
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	proto/node_modules/.bin/buf lint proto
	PYTHON=$(abspath $(BIN)/python) proto/check.sh
	build/tools/bin/kubernetes-validate --strict --quiet deploy/kubernetes.yaml

bench: $(VENV)/.installed-all ## measure, for minutes
	$(BIN)/python benchmarks/first_answer.py
	$(BIN)/python benchmarks/trials_per_second.py
	$(BIN)/python benchmarks/audits_per_second.py
	$(BIN)/python benchmarks/median_error.py --draws 100 --sizes 100 1000 --queries 1 5 25
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/decoders.py
	$(BIN)/python benchmarks/viewer.py
	$(BIN)/python benchmarks/shadows_per_second.py
	$(BIN)/python benchmarks/recording.py
	$(BIN)/python benchmarks/kernels.py
	$(BIN)/python benchmarks/jobs.py
	$(BIN)/python benchmarks/audit_throughput.py

# Warnings are errors.
site: $(VENV)/.installed-docs scripts/site/node_modules/.package-lock.json ## build the documentation in site/, which needs no network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pythons: ## run `test` with each Python from 3.11 to 3.13 that is here
	scripts/pythons.sh

proto: $(VENV)/.installed-all ## generate the Python code of the protocol
	PYTHON=$(abspath $(BIN)/python) proto/generate.sh

# All packages that pyproject.toml asks for, with hashes, at the versions that the files have now; without a file, the newest.
LOCK = build/tools/bin/uv pip compile --quiet --universal --python-version 3.11 --prerelease if-necessary --generate-hashes \
	--no-annotate --custom-compile-command "make lock"

lock: build/tools/.installed ## write the lock files of packages, with hashes
	$(LOCK) pyproject.toml --all-extras --output-file locks/extras.txt
	$(LOCK) pyproject.toml --extra service --extra postgres --constraints locks/extras.txt --output-file locks/service.txt
	$(LOCK) locks/tools.in --output-file locks/tools.txt

supply: build/tools/.installed ## install the service from hashed packages in build/service, with an SBOM and a list of licences
	rm -rf build/service build/wheel
	$(PYTHON) -m venv --without-pip build/service
	build/tools/bin/python -m pip --python build/service install --quiet --require-hashes --only-binary :all: -r locks/service.txt
	build/tools/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml build/service --output-file build/sbom.json
	$(PYTHON) scripts/licences.py build/sbom.json locks/licences.toml > build/licences.txt
	build/tools/bin/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir build/wheel .
	build/tools/bin/python -m pip --python build/service install --quiet --no-deps build/wheel/*.whl
	build/tools/bin/python -m pip --python build/service check

build/tools/.installed: locks/tools.txt
	rm -rf build/tools
	$(PYTHON) -m venv build/tools
	build/tools/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes -r locks/tools.txt
	touch $@

clean: ## remove the environment and what was built
	rm -rf $(VENV) build

.PHONY: environment
environment:
	@$$(test -x $(BIN)/python && echo $(BIN)/python || echo $(PYTHON)) -c '$(FITS)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | environment
	$(PIP) -e '.[games]'
	touch $@

$(VENV)/.installed-all: pyproject.toml | environment
	$(PIP) -e '.[training,release,dev]'
	touch $(VENV)/.installed $@

$(VENV)/.installed-docs: $(VENV)/.installed-all
	$(PIP) -e '.[docs]'
	touch $@

# Exactly the packages that the lock file has hashes of.
%/node_modules/.package-lock.json: %/package.json %/package-lock.json
	npm ci --ignore-scripts --no-audit --no-fund --prefix $*
