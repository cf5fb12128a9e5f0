# Every habit of this project. `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help demo test check format up down test-compose faults contract bench lock clean run-env dev-env
PY := .venv/bin/python
PATHS := shared services tests examples
PGBOUNCER = $(shell PATH=$$PATH:/usr/sbin command -v pgbouncer)
LANGUAGES = $(shell command -v node && { command -v redis-cli || command -v valkey-cli; })
SEEDS ?= 1
ONLY ?=
TESTED := tests.integration.test_contract
STORAGE ?= $(TESTED):TestMemory $(TESTED):TestSQLite $(TESTED):TestPostgres $(TESTED):TestOwn
SHORT ?=
STORE ?=
FOLDER ?=

help: ## This list
	@awk -F ':.*## ' '/^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Try it
demo: run-env ## A bot, a chat page and everything between, on this machine; STORE=postgres: as in production
	@$(if $(HANDLERS),HANDLERS=$(HANDLERS)) $(PY) -m pillarbox_solo demo $(if $(STORE),--store $(STORE)) $(if $(FOLDER),--folder $(FOLDER))

up: ## The whole stack in Docker; without BOT_TOKENS with the demo bot
	@deploy/up

down: ## Stop that stack; its data stays
	@deploy/down

##@ Change it
test: dev-env ## All tests that need no Docker
	@$(if $(PGBOUNCER),,echo "no PgBouncer: its tests are left out")
	@$(if $(word 2,$(LANGUAGES)),,echo "no Node or no redis-cli: the test of other languages is left out")
	@$(PY) -m pytest -n 3 --dist loadfile -m "not docker$(if $(PGBOUNCER),, and not pgbouncer)$(if $(word 2,$(LANGUAGES)),, and not other_languages)"

test-compose: dev-env ## Bring the stack up in Docker, drive it, take it down
	@deploy/test-compose

check: dev-env ## Lint, types, imports, and the compose file where there is a Docker client
	@.venv/bin/ruff check $(PATHS)
	@.venv/bin/ruff format --check $(PATHS)
	@.venv/bin/mypy $(wildcard shared/src services/*/src) tests
	@.venv/bin/lint-imports
	@if docker compose version >/dev/null 2>&1; then docker compose --env-file deploy/env.example --profile demo config -q; else echo "no Docker client: compose.yaml is not checked"; fi

format: dev-env ## Put the code in its form
	@.venv/bin/ruff check --fix $(PATHS)
	@.venv/bin/ruff format $(PATHS)

lock: dev-env ## Resolve the dependencies anew into the two locks
	@.venv/bin/uv export -q --all-packages --no-emit-workspace --no-annotate --no-header --group build --no-dev -o requirements.lock >/dev/null
	@.venv/bin/uv export -q --all-packages --no-emit-workspace --no-annotate --no-header --group build --group dev -o requirements-dev.lock >/dev/null

##@ Prove it
faults: dev-env ## Kill everything under load and count: SEEDS=1,2 STORE=sqlite RECEIVE=polling TROUBLE=1
	@$(PY) -m tests.faults --seeds $(SEEDS) $(if $(STORE),--store $(STORE)) $(if $(RECEIVE),--receive $(RECEIVE)) $(if $(TROUBLE),--trouble)

contract: dev-env ## What every storage must show, over ours or one of your own: STORAGE=package.module:Class
	@$(PY) -m pillarbox.inbox.contract $(STORAGE)

bench: dev-env ## How fast, beside its yardsticks: ONLY=accept, dispatch, send, reply or sqlite
	@$(PY) -m tests.bench $(ONLY) $(if $(SHORT),--short)

##@ Keep it tidy
clean: ## Remove the environment and the demo's data
	@rm -rf .venv .pillarbox .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

run-env:
	@deploy/venv run

dev-env:
	@deploy/venv dev
