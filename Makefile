# Every target sets up what it needs in .venv, once. `make` alone lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:

BIN := .venv/bin
TEST_WORKERS ?= 2
SOURCES := jobcheck tests scenarios conftest.py

.PHONY: help setup demo test lint fix wheel bench matrix fuzz clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do printf 'make %-8s %s\n' "$$name" "$$text"; done

setup: .venv/.dev ## create .venv with everything that developing needs

demo: .venv/.demo ## break the sample shop on purpose and show what was found (DEMO_ARGS="...")
	@$(BIN)/jobcheck demo $(DEMO_ARGS)

test: .venv/.dev ## run the tests (PYTEST_ARGS="-k word", TEST_WORKERS=0)
	@$(BIN)/python -m pytest -q -n $(TEST_WORKERS) --dist loadfile $(PYTEST_ARGS)

lint: .venv/.dev ## style, types and the import bands
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(BIN)/ruff format --quiet --check $(SOURCES) || { echo 'not formatted: run "make fix"' >&2; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python -m pytest -q --no-header --no-summary tests/test_architecture.py >/dev/null || $(BIN)/python -m pytest -q tests/test_architecture.py

fix: .venv/.dev ## format the code and mend what ruff can mend by itself
	@$(BIN)/ruff check --quiet --fix $(SOURCES)
	@$(BIN)/ruff format --quiet $(SOURCES)

wheel: .venv/.dev ## build the wheel, and check it in an empty environment
	@bash .ci/wheel

bench: .venv/.dev ## run the benchmarks of tests/benchmarks: tables to paste into docs/benchmarks.md
	@$(BIN)/python tests/benchmarks/machine.py
	@for bench in tests/benchmarks/bench_*.py; do echo; $(BIN)/python "$$bench"; done

matrix: .venv/.dev ## the cells of docs/matrix.md, leases rewound and real: 15 min (MATRIX_ARGS="SIGSTOP early")
	@$(BIN)/python tests/benchmarks/machine.py
	@echo
	@PYTHONPATH=tests/benchmarks $(BIN)/python tests/matrix/matrix.py $(MATRIX_ARGS)

fuzz: .venv/.fuzz ## fuzz every decoder, guided by coverage (FUZZ_ARGS="--seconds 300 redis")
	@$(BIN)/python tests/fuzz/fuzz.py $(FUZZ_ARGS)

clean: ## remove what make made: .venv, caches, builds (reports/ stays)
	@rm -rf .venv .fuzz .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.dev: pyproject.toml .ci/venv
	@bash .ci/venv dev

.venv/.demo: pyproject.toml .ci/venv
	@bash .ci/venv demo

.venv/.fuzz: pyproject.toml .ci/venv
	@bash .ci/venv fuzz
