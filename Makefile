# All targets work in an environment of their own, .venv, which the first one that needs it creates.

# Tests start hundreds of Pythons, each of which would otherwise compile again what it imports.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# Python compiles what is imported, which is a small part of what is installed.
INSTALL := $(PIP) install --quiet --progress-bar off --require-hashes --no-compile
DEMO_READY := $(VENV)/.demo-ready
TEST_READY := $(VENV)/.test-ready
CHECK_READY := $(VENV)/.check-ready
BROWSER_READY := $(VENV)/.browser-ready
TESTS := tests cppsim/tests
TEST_PATH := PYTHONPATH=tools:tests:cppsim/tests
FIGURES := docs/performance
BATCHES := build/gpu
NAMED := $(addprefix --configuration ,copy small one-port) \
  $(addprefix --design ,stream-64 stream-logic-64)
# A module is run by one worker, which builds its circuits once; tests/support/runner.py puts long ones first.
# Without -c, pytest would take the settings of cppsim for TESTS=cppsim/tests.
PYTEST = $(BIN)/python -m pytest -c pyproject.toml -n $(WORKERS) --dist loadfile --no-loadscope-reorder
# The first collection compiles all that tests import, in 15 s, which one core has while lint runs.
COLLECT = $(BIN)/python -m pytest -c pyproject.toml -p no:cacheprovider --collect-only
QUICK = -m "not slow and not deep" --hypothesis-profile quick
FULL = -m "not deep" --hypothesis-profile full
DEEP = --hypothesis-profile deep
GPU_PYTHON = PYTHONPATH=rtl:cppsim/src:sim:host:tools $(firstword $(wildcard $(BIN)/python) python3)
RECORD :=
STORE = $(if $(RECORD),--store-durations $(RECORD)/durations.json)
WORKERS := 2
COUNT := 200
SEED := 1
TIER := full
PACKAGE := rtl
BOARD := hx8k
OPTIONS :=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check rest deep ci durations forget prove compilers verify mutants flips lint bench figures performance batches gpu docs notebooks registers status recording drawing package pins venv clean distclean moved

help: ## List the targets
	@echo "bitlane: DirectML's bit operators on an FPGA. Targets:"
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "The first run of demo or test installs what it needs into $(VENV); later runs reuse it."

demo: $(DEMO_READY) ## Run the demo on the simulated circuit; pictures go to out/
	@$(BIN)/python -c "import os, sys, bitlane; os.path.samefile(bitlane.__file__, 'host/bitlane/__init__.py') or sys.exit('make demo: bitlane is a copy in ' + bitlane.__path__[0] + '; rm $(DEMO_READY), then make demo installs this folder again')"
	@$(BIN)/bitlane demo

test: $(TEST_READY) ## Check style, types and imports, then run the quick tests (TESTS=tests/host for some)
	@$(COLLECT) $(QUICK) $(TESTS) > /dev/null 2>&1 & collecting=$$!; \
	  $(MAKE) --no-print-directory lint; ended=$$?; kill $$collecting 2> /dev/null; exit $$ended
	@echo "== pytest, quick tests, $(WORKERS) at a time"
	@$(PYTEST) $(QUICK) $(STORE) $(if $(RECORD),--store-passed $(RECORD)/passed.json) $(TESTS)

check: lint rest ## Run pyright, then the full tier: proofs, packages, and samples of boards and seeds

rest: $(CHECK_READY) ## Run of `make check` what `make test RECORD=FOLDER` left out
	@echo "== pytest, full tier$(if $(RECORD), but what $(RECORD)/passed.json names), $(WORKERS) at a time"
	@echo "== beside it pyright, which infers other types than mypy"
	@$(BIN)/python -m pyright --warnings & inferring=$$!; trap "kill $$inferring 2> /dev/null" EXIT; \
	  $(PYTEST) $(FULL) $(STORE) $(if $(RECORD),--except-passed $(RECORD)/passed.json --except-known) $(TESTS) \
	  && wait $$inferring

deep: lint $(BROWSER_READY) ## Run all tests: every board, three times the seeds, a browser; takes hours
	@echo "== pytest, deep tier, $(WORKERS) at a time"
	@$(PYTEST) $(DEEP) $(TESTS)

ci: ## Run .ci/run in a fresh clone of HEAD, with an empty HOME; build/ci/COMMIT shows that it passed
	@sh requirements/fresh_clone.sh build/ci

durations: $(TEST_READY) ## Write tests/durations.json from the seconds that `make ci` measured
	@$(TEST_PATH) $(BIN)/python -m support.durations build/ci/durations.json

forget: $(TEST_READY) ## Remove the stored verdicts of tests: the next run checks all anew
	@$(TEST_PATH) $(BIN)/python -m support.verdicts

prove: $(CHECK_READY) ## Prove the circuit's control (streams, bursts, bus rules) and plant all bugs
	@$(PYTEST) $(DEEP) tests/formal

compilers: $(CHECK_READY) ## Run the demo and some tests with ziglang alone, and without a C++ compiler
	@$(PYTEST) $(FULL) tests/compilers

verify: $(CHECK_READY) ## Build boards and run their bitstreams and netlists, with many faults
	@$(PYTEST) $(DEEP) tests/verify cppsim/tests/cpp/test_fuzz.py

mutants: $(CHECK_READY) ## Change PACKAGE (rtl) in COUNT places, one at a time: do its tests notice? (TIER=quick)
	@$(TEST_PATH) $(BIN)/python -m mutants.run --package $(PACKAGE) --count $(COUNT) --seed $(SEED) \
	  --workers $(WORKERS) --tier $(TIER) $(OPTIONS)

flips: $(CHECK_READY) ## Flip each bit of the LUTs of BOARD's bitstream: does a pin show it? (OPTIONS=--help)
	@$(TEST_PATH) $(BIN)/python -m flips.run $(BOARD) $(OPTIONS)

lint: $(TEST_READY) ## Check style, types and imports
	@echo "== ruff"
	@$(BIN)/python -m ruff check --quiet .
	@$(BIN)/python -m ruff format --check --quiet .
	@echo "== mypy"
	@$(BIN)/python -m mypy
	@echo "== import-linter"
	@$(BIN)/lint-imports

bench: $(DEMO_READY) ## Measure the circuit against its speed contract
	@$(BIN)/bitlane bench

figures: $(CHECK_READY) ## Measure all that docs/performance.md shows, and write it; takes half an hour
	@mkdir -p $(FIGURES)
	@$(BIN)/bitlane bench --json $(FIGURES)/cycles.json --plot $(FIGURES)/cycles.png
	@$(TEST_PATH) $(BIN)/python -m simulators.run verilator --json $(FIGURES)/verilator.json
	@$(TEST_PATH) $(BIN)/python -m simulators.run batch --json $(FIGURES)/batch.json
	@$(TEST_PATH) $(BIN)/python -m simulators.run evaluators --json $(FIGURES)/simulators.json
	@$(BIN)/python -m pytest --quiet tools/benchmarks --benchmark-json $(FIGURES)/host.json
	@$(BIN)/bitlane area --family ecp5 --design copy-32 --design full-64 --json $(FIGURES)/area_ecp5.json
	@$(BIN)/bitlane area --family ice40 --design small-32 --json $(FIGURES)/area_ice40.json
	@$(BIN)/bitlane area --seeds 1 --family ecp5 $(NAMED) --json $(FIGURES)/area_named_ecp5.json
	@$(BIN)/bitlane area --seeds 1 --family ice40 --configuration copy \
	  --design stream-count-32 --json $(FIGURES)/area_named_ice40.json
	@$(MAKE) --no-print-directory performance

performance: $(TEST_READY) ## Write docs/performance.md and tables of other pages from docs/performance
	@$(TEST_PATH) $(BIN)/python -m support.docs.performance
	@echo "wrote docs/performance.md"

batches: $(CHECK_READY) ## Export what `make gpu` runs, for a machine with a GPU and without Amaranth
	@echo "== Writing $(BATCHES)"
	@PYTHONPATH=cppsim/tests $(BIN)/python -m support.batches $(BATCHES)/equality
	@$(TEST_PATH) $(BIN)/python -m simulators.run batch --export $(BATCHES)/system > /dev/null

gpu: ## Compare a GPU with threads and the single simulator, and measure it (BATCHES: from where)
	@$(GPU_PYTHON) -c "import numpy" 2> /dev/null || \
	  { echo "make gpu: no NumPy: make venv, then $(BIN)/pip install cupy-cuda13x" >&2; exit 1; }
	@$(GPU_PYTHON) -m cppsim.batch --gpu
	@test -e $(BATCHES)/system/circuit.json || $(MAKE) --no-print-directory batches
	@$(GPU_PYTHON) -m cppsim.batch --compare $(BATCHES)/equality/*
	@$(GPU_PYTHON) -m simulators.run batch --folder $(BATCHES)/system --json $(FIGURES)/batch_gpu.json

docs: $(CHECK_READY) ## Build the site from docs/ and the docstrings into build/site
	@$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html docs build/site
	@echo "wrote build/site/index.html"

notebooks: $(CHECK_READY) ## Write docs/*.ipynb from the two first hours, and run their cells
	@$(TEST_PATH) $(BIN)/python -m support.docs.notebooks

registers: $(DEMO_READY) ## Write docs/registers.md from the contract between circuit and driver
	@$(BIN)/python -m bitlane_sim.export.registers_page > docs/registers.md.new
	@mv docs/registers.md.new docs/registers.md
	@echo "wrote docs/registers.md"

status: $(TEST_READY) ## Write docs/status.md; builds below build/ that are new go to docs/measurements/builds.json
	@$(TEST_PATH) $(BIN)/python -m support.docs.status

recording: $(TEST_READY) ## Run the demo, and draw the terminal of the README, docs/recording.svg
	@$(TEST_PATH) $(BIN)/python -m support.docs.recording

drawing: ## Draw docs/data_path.svg from docs/data_path.dot (needs Graphviz' dot)
	@dot -Tsvg docs/data_path.dot > docs/data_path.svg.new
	@mv docs/data_path.svg.new docs/data_path.svg
	@echo "wrote docs/data_path.svg"

package: $(CHECK_READY) ## Build wheels and sdists into dist/, and try them on every Python that they name
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist ./cppsim > /dev/null
	@$(BIN)/python -m build --no-isolation --outdir dist . > /dev/null
	@$(BIN)/python -m twine check --strict dist/*
	@BITLANE_EVERY_PYTHON=1 $(BIN)/python -m pytest tests/package

pins: ## Renew the pins in requirements/ (needs uv)
	@sh requirements/renew.sh

venv: $(CHECK_READY) ## Set up the environment that demo and all tests use

clean: ## Remove what demo, tests and builds have written
	@rm -rf out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache cppsim/.pytest_cache cppsim/.hypothesis
	@find rtl cppsim sim host boards tools tests -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "cleaned; the environment $(VENV) is kept (make distclean removes it too)"

distclean: clean ## Remove the environment too
	@rm -rf $(VENV)

# An environment knows its own path: one that was copied or moved along is made anew.
ifneq ($(shell cat $(VENV)/.made-in 2>/dev/null),$(CURDIR))
$(VENV)/.made-in: moved
endif

$(VENV)/.made-in:
	@sh requirements/environment.sh "$(VENV)"
	@echo "$(CURDIR)" > $@

$(DEMO_READY): $(VENV)/.made-in pyproject.toml cppsim/pyproject.toml requirements/demo.txt requirements/compiler.txt
	@echo "== Installing what the demo needs into $(VENV), pinned and hash-checked"
	@$(INSTALL) -r requirements/demo.txt
	@if cxx=$$(command -v g++ || command -v clang++ || command -v c++); then \
	  echo "== C++ compiler found: $$cxx"; \
	else \
	  echo "== No C++ compiler found: installing one, ziglang, into $(VENV)"; \
	  $(INSTALL) -r requirements/compiler.txt; \
	fi
	@echo "== Installing bitlane itself and cppsim from this folder, editable"
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable ./cppsim --editable .
	@touch $@

$(TEST_READY): $(DEMO_READY) requirements/test.txt
	@echo "== Installing what the quick tests need into $(VENV), pinned and hash-checked"
	@$(INSTALL) -r requirements/test.txt
	@touch $@

$(CHECK_READY): $(TEST_READY) requirements/dev.txt
	@echo "== Installing what all tests need into $(VENV), pinned and hash-checked"
	@$(INSTALL) -r requirements/dev.txt
	@touch $@

$(BROWSER_READY): $(CHECK_READY) requirements/browser/package-lock.json
	@echo "== Installing the browser that tests open pages in into $(VENV), hash-checked"
	@$(BIN)/python requirements/browser/install.py
	@touch $@
