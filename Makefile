# make demo    build an environment and compare recipes for Llama 3 405B on the NPU
# make check   every check: format, lint, types, import rules, tests (also: format, lint, types, imports, test)
# make fix     let ruff reformat and repair what it can
# make bench   the benchmarks        make coverage   the tests with branch coverage
# make clean   remove what these made
#
# Needs make and Python 3.11 or later (PYTHON=/path/to/python chooses one); pip fetches the rest. The demo and the
# checks each have an environment of their own, so neither can break the other.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

ifndef PYTHON
# The first Python on the path that is recent enough and can build an environment.
PYTHON := $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	"$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { echo "$$python"; break; }; done)
endif

DEMO_ENV := .venv
CHECK_ENV := .venv-check
DEMO_STAMP := $(DEMO_ENV)/.installed
CHECK_STAMP := $(CHECK_ENV)/.installed
BIN := $(CHECK_ENV)/bin
TIMELINE := demo/llama3_405b_npu.html
RECIPES := bf16,delayed,current,mxfp8,hif8_delayed

.PHONY: help
help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

# $(call environment,DIRECTORY,WHAT PIP INSTALLS)
define environment
	@test -n "$(PYTHON)" || { echo "No Python >= 3.11 with venv found; install one or say PYTHON=/path/to/python" >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "$(PYTHON) is older than Python 3.11; say PYTHON=/path/to/a/later/one" >&2; exit 2; }
	@echo "Building $(1) with $(PYTHON)"
	@"$(PYTHON)" -m venv $(1)
	@$(1)/bin/python -m pip install --quiet --disable-pip-version-check --editable '$(2)'
	@touch $@
endef

$(DEMO_STAMP): pyproject.toml
	$(call environment,$(DEMO_ENV),.)

$(CHECK_STAMP): pyproject.toml
	$(call environment,$(CHECK_ENV),.[test])

.PHONY: demo
demo: $(DEMO_STAMP)
	@mkdir -p $(dir $(TIMELINE))
	$(DEMO_ENV)/bin/hwmodel compare llama3_405b --device npu --recipes $(RECIPES) --timeline $(TIMELINE)
	@echo
	@echo "Timeline: $(CURDIR)/$(TIMELINE) (open it in a browser)"

# Without -j the checks run in this order, the quickest to fail first.
.PHONY: check lint format types imports test
check: lint format types imports test
	@echo "All checks passed."

lint: $(CHECK_STAMP)
	$(BIN)/ruff check .

format: $(CHECK_STAMP)
	$(BIN)/ruff format --check .

types: $(CHECK_STAMP)
	$(BIN)/mypy

imports: $(CHECK_STAMP)
	$(BIN)/lint-imports

test: $(CHECK_STAMP)
	$(BIN)/python -m pytest

.PHONY: fix coverage bench
fix: $(CHECK_STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

coverage: $(CHECK_STAMP)
	$(BIN)/python -m pytest --cov --cov-report=term

bench: $(CHECK_STAMP)
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/whole.py

.PHONY: clean
clean:
	rm -rf $(DEMO_ENV) $(CHECK_ENV) demo benchmarks/results build dist .coverage htmlcov
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find hwmodel tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
