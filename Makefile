# The one task runner. `make` alone prints this help.
PYTHON ?= python3.13
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help dev test check format setup docs clean

help: ## Print this help
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## Make the environment in .venv (every other target does it by itself)

$(STAMP): pyproject.toml layers/dependencies/requirements.txt
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.13 is needed: $(PYTHON) was not found (set PYTHON=...)" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

dev: setup ## Serve the bot and its playground on http://127.0.0.1:8765
	@$(BIN)/rejoinder dev $(ARGS)

test: setup ## Run every test that needs neither Docker nor a browser
	$(BIN)/python -m pytest -m 'not e2e' -n auto $(ARGS)

check: setup ## Lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy layers/rejoinder/rejoinder tests
	$(BIN)/lint-imports --no-logo

format: setup ## Format, and fix what a machine can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup ## Write the generated parts of docs/
	$(BIN)/python docs/transition_table.py

clean: ## Remove everything that was made here
	rm -rf $(VENV) .aws-sam .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
