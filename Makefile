# Every target sets itself up: Python 3.11+ and make are all it takes.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml constraints.txt $(shell find engine eval qrels -type f -not -name '*.pyc')
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# What `make check` tests: what runs in seconds, chosen by measured CPU time.
FAST := tests/unit/engine tests/unit/measures tests/unit/terminal tests/unit/report tests/unit/datasets

.PHONY: help check demo test lab lint types parity bench evidence clean

help:  ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 18

check: lint types  ## lint, types and the fast tests of the checkout, in less than a minute
	PYTHONPATH=engine:eval $(BIN)/python -m pytest -q -n 2 -k "not TestSharedSets" $(FAST)

demo: .venv/installed  ## compare, tune and report on the data set inside the package
	$(BIN)/steelyard demo --out reports/demo

test: lint types  ## lint, types, tests of the installed package
	$(BIN)/python -m pytest -n 2 --dist worksteal tests --pyargs steelyard steelyard_eval

lint: .venv/tested  ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/tested  ## mypy --strict
	$(BIN)/mypy

lab: .venv/tested  ## JupyterLab on the notebooks
	$(BIN)/jupyter lab notebooks

parity: .venv/tested  ## recorded outputs of the real systems beside ours
	$(BIN)/python tests/parity/report.py

bench: .venv/benched  ## speed, as ratios against peers in one process
	$(BIN)/python tests/benchmarks/bench.py

evidence: .venv/tested  ## whether tuned settings keep what they promise, on real sets (STEELYARD_DATA)
	$(BIN)/python tests/benchmarks/evidence.py

clean:  ## remove .venv and the demo's report
	rm -rf .venv reports/demo

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; make PYTHON=...")'
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python $(SOURCES)
	$(INSTALL) .
	$(INSTALL) --no-deps --force-reinstall .
	touch $@

.venv/tested: .venv/installed
	$(INSTALL) '.[test,notebooks]'
	touch $@

.venv/benched: .venv/tested
	$(INSTALL) '.[bench]'
	touch $@
