# The one task runner. `make` alone prints this help.
PYTHON ?= python3.13
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Each pins its own botocore, so each has an environment of its own.
SAM_VENV := .e2e-venv
EMULATOR_VENV := .ministack-venv
SAM := $(SAM_VENV)/bin/sam
EVENT ?= events/telegram/text.json

.DEFAULT_GOAL := help
.PHONY: help dev test prove check format setup e2e-tools build deploy e2e fuzz invoke start-api stop-emulator docs trace clean

help: ## Print this help
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(STAMP) ## Make the environment in .venv (every other target does it by itself)

$(STAMP): pyproject.toml layers/dependencies/requirements.txt layers/bot/requirements.txt
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.13 is needed: $(PYTHON) was not found (set PYTHON=...)" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' -r layers/bot/requirements.txt
	@touch $@

dev: setup ## Serve the bot and its playground on http://127.0.0.1:8765
	@$(BIN)/rejoinder dev $(ARGS)

test: setup ## Run every test that needs neither Docker nor a browser
	$(BIN)/python -m pytest -m 'not e2e' -n auto --dist worksteal $(ARGS)

prove: setup ## Explore every interleaving, e.g. make prove BOUND=messages=3,crashes=1
	@$(BIN)/python -m rejoinder.simulator.prove $(BOUND)

check: setup ## Lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy layers/rejoinder/rejoinder functions examples tests
	$(BIN)/lint-imports --no-logo

format: setup ## Format, and fix what a machine can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

e2e-tools: $(SAM_VENV)/.installed $(EMULATOR_VENV)/.installed ## Make the environments of the SAM CLI and of the AWS emulator

$(SAM_VENV)/.installed:
	@command -v $(PYTHON) >/dev/null || { echo "Python 3.13 is needed: $(PYTHON) was not found (set PYTHON=...)" >&2; exit 1; }
	test -x $(SAM_VENV)/bin/python || $(PYTHON) -m venv $(SAM_VENV)
	$(SAM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check 'aws-sam-cli>=1.170,<2' 'awslambdaric>=4.2,<5'
	@touch $@

$(EMULATOR_VENV)/.installed:
	test -x $(EMULATOR_VENV)/bin/python || $(PYTHON) -m venv $(EMULATOR_VENV)
	$(EMULATOR_VENV)/bin/python -m pip install --quiet --disable-pip-version-check 'ministack==1.5.33' 'aws-sam-translator>=1.90,<2'
	@touch $@

build: e2e-tools ## Build the functions and layers into .aws-sam/build, without a container (ARGS: of `sam build`)
	SAM_CLI_TELEMETRY=0 $(SAM) build $(ARGS)

deploy: e2e-tools ## Build, and deploy to the AWS account of your environment (ARGS: of `sam deploy`, '--stack-name my-bot', …)
	SAM_CLI_TELEMETRY=0 $(SAM) build
	SAM_CLI_TELEMETRY=0 $(SAM) deploy $(ARGS)

e2e: setup e2e-tools ## Deploy for real to an emulator of AWS on loopback, and test that, containers, kills and the browser
	PYTHONPATH=tests $(BIN)/python -m e2e.emulator -- $(BIN)/python -m pytest -m e2e $(ARGS)

$(VENV)/.fuzzer: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'atheris>=3.1,<4'
	@touch $@

fuzz: $(VENV)/.fuzzer ## Fuzz what reads webhooks and wake-ups for a minute (ARGS='--seconds 600 slack')
	PYTHONPATH=tests $(BIN)/python -m fuzz.run $(ARGS)

invoke: setup e2e-tools ## Run a function in a container on one stored event: make invoke EVENT=events/wakeup/sqs.json
	@PYTHONPATH=tests $(BIN)/python -m e2e.local_aws invoke $(EVENT) $(ARGS)

start-api: setup e2e-tools ## Serve the ingest function in containers on http://127.0.0.1:3000, for real webhooks
	@PYTHONPATH=tests $(BIN)/python -m e2e.local_aws start-api $(ARGS)

stop-emulator: setup ## End the emulator that `make invoke` or `make start-api` started
	@PYTHONPATH=tests $(BIN)/python -m e2e.local_aws stop

docs: setup ## Write the generated parts of docs/
	$(BIN)/python docs/transition_table.py
	$(BIN)/python docs/prompting_examples.py

trace: setup ## Count what 1,000 bursts cost: absorbing, restarting, a debounce alone, one call a message
	@$(BIN)/python benchmarks/trace.py $(ARGS)

clean: ## Remove everything that was made here
	rm -rf $(VENV) $(SAM_VENV) $(EMULATOR_VENV) .aws-sam .fuzz .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
