# `make demo` shows the game; `make test` runs the tests. Both need nothing but Python 3.11 or later.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FITS = import sys; sys.version_info < (3, 11) and sys.exit("fairwall needs Python 3.11 or later, and this is %s: make clean, then \
	name one, as in make demo PYTHON=python3.12" % sys.version.split()[0])
# To compile all of what is installed takes as long as to install it, and most of it is never imported.
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile

# Where the environment says to keep no compiled code, each of the tests' thousand processes would compile it all again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check slow quick postgres second-client browser lint bench site pythons proto lock supply clean

demo: $(VENV)/.installed
	$(BIN)/fairwall run demo

# Every behaviour once, in minutes.
test: $(VENV)/.installed-all
	$(BIN)/python -m pytest -n auto --dist worksteal

# What `test` leaves out: more cases, some broken servers, the commands of every page.
check: $(VENV)/.installed-all
	$(BIN)/python -m pytest -n auto --dist worksteal -m "check and not slow"

# What both leave out, in twelve shards of minutes each: slow tests, with fresh examples of Hypothesis, and mutants of the
# code, which tell which changes no test notices. All shards are run by .ci/nightly: make slow SHARD=3/12
SHARD ?= 1/12

slow: $(VENV)/.installed-all
	$(BIN)/python -m pytest -n auto --dist load --maxschedchunk 1 -m slow --shard $(SHARD) --hypothesis-profile=default
	$(BIN)/python scripts/mutants.py --shard $(SHARD) --jobs 2
	$(BIN)/python scripts/drawn_mutants.py --shard $(SHARD) --jobs 2

# What concerns some files, as far as `test` runs it: make quick compliance/deployment/serve.py docs/serving.md
quick: $(VENV)/.installed-all
	$(BIN)/python scripts/quick.py $(filter-out $@,$(MAKECMDGOALS))
ifeq (quick,$(firstword $(MAKECMDGOALS)))
.PHONY: $(filter-out quick pyproject.toml,$(MAKECMDGOALS))
$(filter-out quick pyproject.toml,$(MAKECMDGOALS)): ; @:
endif

# A PostgreSQL server until Ctrl-C, for a ledger in a database; it prints its address.
postgres: $(VENV)/.installed-all
	$(BIN)/python scripts/postgres.py build/postgres

# What the tests of the client in JavaScript need; without it they are skipped.
second-client: tests/second_client/node_modules/.package-lock.json

# What the tests of pages find faults of accessibility with; without it, or without Chromium, they are skipped.
browser: tests/browser/node_modules/.package-lock.json

# Format, lint, types, import contracts, the protocol (lint, and generated code as checked in), and Kubernetes' manifests.
lint: $(VENV)/.installed-all proto/node_modules/.package-lock.json build/tools/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	proto/node_modules/.bin/buf lint proto
	PYTHON=$(abspath $(BIN)/python) proto/check.sh
	build/tools/bin/kubernetes-validate --strict --quiet deploy/kubernetes.yaml

bench: $(VENV)/.installed-all
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

# The documentation as a site in site/, which needs no other place; warnings are errors.
site: $(VENV)/.installed-docs scripts/site/node_modules/.package-lock.json
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The default tests with each Python from 3.11 to 3.13 that is here.
pythons:
	scripts/pythons.sh

# Generates the Python code of the protocol again.
proto: $(VENV)/.installed-all
	PYTHON=$(abspath $(BIN)/python) proto/generate.sh

# All packages that pyproject.toml asks for, with hashes, at the versions that the files have now; without a file, the newest.
LOCK = build/tools/bin/uv pip compile --quiet --universal --python-version 3.11 --prerelease if-necessary --generate-hashes \
	--no-annotate --custom-compile-command "make lock"

lock: build/tools/.installed
	$(LOCK) pyproject.toml --all-extras --output-file locks/extras.txt
	$(LOCK) pyproject.toml --extra service --extra postgres --constraints locks/extras.txt --output-file locks/service.txt
	$(LOCK) locks/tools.in --output-file locks/tools.txt

# The service as it is deployed, from hashed packages alone, in build/service; what it consists of, under which licences.
supply: build/tools/.installed
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

clean:
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
