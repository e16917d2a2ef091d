# `make demo` shows the game; `make test` runs the tests. Both need nothing but Python 3.11 or later.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

# Where the environment says to keep no compiled code, each of the tests' thousand processes would compile it all again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all second-client mutants lint bench proto clean

demo: $(VENV)/.installed
	$(BIN)/fairwall run demo

test: $(VENV)/.installed-all
	$(BIN)/python -m pytest -n 3 --dist worksteal

test-all: $(VENV)/.installed-all
	$(BIN)/python -m pytest -m "" --hypothesis-profile=default

# Changes the code in one place at a time, and tells which changes no test notices.
mutants: $(VENV)/.installed-all
	$(BIN)/python scripts/mutants.py --jobs 2

# What the tests of the client in JavaScript need; without it they are skipped.
second-client: tests/second_client/node_modules/.package-lock.json

# Format, lint, types, import contracts, and the protocol: lint, and generated code as checked in.
lint: $(VENV)/.installed-all proto/node_modules/.package-lock.json
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	proto/node_modules/.bin/buf lint proto
	PYTHON=$(abspath $(BIN)/python) proto/check.sh

bench: $(VENV)/.installed-all
	$(BIN)/python benchmarks/first_answer.py
	$(BIN)/python benchmarks/trials_per_second.py
	$(BIN)/python benchmarks/audits_per_second.py
	$(BIN)/python benchmarks/median_error.py
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/decoders.py
	$(BIN)/python benchmarks/shadows_per_second.py
	$(BIN)/python benchmarks/recording.py
	$(BIN)/python benchmarks/jobs.py
	$(BIN)/python benchmarks/audit_throughput.py

# Generates the Python code of the protocol again.
proto: $(VENV)/.installed-all
	PYTHON=$(abspath $(BIN)/python) proto/generate.sh

clean:
	rm -rf $(VENV)

$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	touch $@

$(VENV)/.installed-all: $(VENV)/.installed
	$(PIP) -e '.[training,release,dev]'
	touch $@

# Exactly the packages that the lock file has hashes of.
%/node_modules/.package-lock.json: %/package.json %/package-lock.json
	npm ci --ignore-scripts --no-audit --no-fund --prefix $*
