# Two commands matter: `make demo` and `make test`. Each makes all it needs from nothing, and is quick the second time.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help venv setup lakehouse docker demo matrix matrix-jobs matrix-effects schemas bench bench-packing test test-long test-docker test-lakehouse test-newcomer lint types fmt wheel clean distclean

BIN := .venv/bin
CODE := harness faults assertions

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 15

venv: ## the virtual environment .venv, with every dependency as uv.lock has it
	@bash ci/venv.sh

setup: venv ## that, a Java runtime, the pinned jars, and the class-data archives
	@bash ci/java.sh
	@$(BIN)/onceproof setup

docker: ## what --env docker needs: an engine that runs, Compose v2, the base image
	@bash ci/docker.sh

demo: setup $(filter docker,$(ENV)) ## kill three sinks at each step of the commit protocol and say what held (ENV=docker)
	@$(BIN)/onceproof demo --env $(or $(ENV),local)

# A file goes to one process, in the order of `testpaths`: trials first and the short unit tests last, so that all three
# are busy to the end.
test: setup ## every test but those that need Docker or are marked long
	@$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

test-long: setup ## the tests marked long: further sinks of classes of which `make test` has one
	@$(BIN)/python -m pytest -n 3 --dist worksteal -m long

test-docker: setup docker ## the tests of the Docker environment
	@$(BIN)/onceproof setup --env docker
	@$(BIN)/python -m pytest tests/docker

lakehouse: setup ## what reads the tables of Delta Lake's and Iceberg's sinks
	@env -u VIRTUAL_ENV $(BIN)/uv sync --quiet --frozen --inexact --group lakehouse --python $(BIN)/python

test-lakehouse: lakehouse ## the tests of those sinks (their jars and a second Spark are fetched for them)
	@$(BIN)/python -m pytest tests/lakehouse

test-newcomer: ## set-up, a trial and the tests of life and death in a bare container, from a clone of HEAD
	@bash ci/newcomer.sh

lint: venv ## ruff, rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

# mypy does not follow the finders of an editable install: it is shown the folders under their installed name.
types: venv ## mypy --strict
	@rm -rf build/types && mkdir -p build/types/onceproof
	@for file in onceproof/*.py onceproof/py.typed $(CODE); do ln -s ../../../$$file build/types/onceproof/; done
	@MYPYPATH=build/types $(BIN)/python -m mypy -p onceproof

fmt: venv ## format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

wheel: venv ## dist/*.whl
	@rm -rf build/lib build/bdist.* dist
	@$(BIN)/uv build --quiet --wheel --out-dir dist .
	@ls dist/*.whl

schemas: venv ## docs/*.schema.json, and the tables of docs/phases.md, from the code
	@$(BIN)/python -m onceproof.harness.schemas docs

matrix: lakehouse ## certify every reference and broken sink (hours; DIRECTORY= to go on in, SINKS= to choose, POINTS= of broken ones)
	@$(BIN)/python bench/matrix.py $(if $(DIRECTORY),--directory $(DIRECTORY)) $(if $(POINTS),--points '$(POINTS)') $(SINKS)

matrix-jobs: lakehouse ## each reference job with its sinks, triggers and state stores (hours; DIRECTORY= to go on in, JOBS= to choose)
	@$(BIN)/python bench/jobs.py $(if $(DIRECTORY),--directory $(DIRECTORY)) $(JOBS)

matrix-effects: lakehouse ## sweep them by effects alone and by lines alone (hours; DIRECTORY=, SINKS= as above)
	@$(BIN)/python bench/effects.py $(if $(DIRECTORY),--directory $(DIRECTORY)) $(SINKS)

bench: setup ## the time of a trial, by stage (ENVS="local docker" for both environments in one run)
	@$(BIN)/python bench/trial.py $(ENVS:%=--env %)

bench-packing: setup ## what a point costs in a run that it shares, and in one of its own (SINKS= to choose)
	@$(BIN)/python bench/packing.py $(SINKS)

clean: ## remove what was built, but not .venv and the cache of artifacts
	@rm -rf build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find $(CODE) jobs tests onceproof -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## that, and .venv
	@rm -rf .venv
