# `make` alone prints this list. Every target sets itself up from nothing.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# The first Python on the path that is new enough; `make PYTHON=/path/to/python` overrides.
PYTHON ?= $(firstword $(foreach p,python3 python3.13 python3.12 python3.11 python3.14 python,$(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $(p))))

.PHONY: help
help: ## print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## make .venv from uv.lock (quick when nothing changed)
	@test -n "$(PYTHON)" || { echo "setup: no Python 3.11 or newer on the path; install one or say make PYTHON=/path/to/python" >&2; exit 1; }
	@$(PYTHON) tools/setup.py

.PHONY: clean
clean: ## remove caches and built things; keeps .venv and the data of a stack
	@rm -rf .build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.venv/*' -not -path './.uv/*' -prune -exec rm -rf {} +
