# Two commands matter: `make demo` and `make test`. Each makes all it needs from nothing, and is quick the second time.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help venv setup docker demo test test-docker lint types fmt wheel bench clean distclean

BIN := .venv/bin
CODE := harness faults assertions

help: ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

venv: ## the virtual environment .venv, with every dependency as uv.lock has it
	@bash ci/venv.sh

setup: venv ## that, a Java runtime, the pinned jars, and the class-data archives
	@bash ci/java.sh
	@$(BIN)/onceproof setup

docker: ## what --env docker needs: an engine that runs, Compose v2, the base image
	@bash ci/docker.sh

demo: setup $(filter docker,$(ENV)) ## kill three sinks at each step of the commit protocol and say what held (ENV=docker)
	@$(BIN)/onceproof demo --env $(or $(ENV),local)

test: setup ## every test but those that need Docker
	@$(BIN)/python -m pytest -n 3 --dist worksteal

test-docker: setup docker ## the tests of the Docker environment
	@$(BIN)/onceproof setup --env docker
	@$(BIN)/python -m pytest tests/docker

lint: venv ## ruff, rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

# mypy does not follow the finders of an editable install: it is shown the folders under their installed name.
types: venv ## mypy --strict
	@mkdir -p build/types/onceproof
	@ln -sfn ../../../onceproof/__init__.py build/types/onceproof/__init__.py
	@ln -sfn ../../../onceproof/py.typed build/types/onceproof/py.typed
	@for folder in $(CODE); do ln -sfn ../../../$$folder build/types/onceproof/$$folder; done
	@MYPYPATH=build/types $(BIN)/python -m mypy -p onceproof

fmt: venv ## format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

wheel: venv ## dist/*.whl
	@rm -rf build/lib build/bdist.* dist
	@$(BIN)/uv build --quiet --wheel --out-dir dist .
	@ls dist/*.whl

bench: setup ## the time of a trial, by stage (ENVS="local docker" for both environments in one run)
	@$(BIN)/python bench/trial.py $(ENVS:%=--env %)

clean: ## remove what was built, but not .venv and the cache of artifacts
	@rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find $(CODE) jobs tests onceproof -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## that, and .venv
	@rm -rf .venv
