# Two commands do all the set-up: `make demo` shows the tool at work, `make test` checks everything.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
INPUTS := pyproject.toml constraints.txt

.PHONY: demo test lint types unit docs format clean

demo: $(VENV)/.core
	@$(BIN)/prune4rel demo

test: lint types docs unit

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

unit: $(VENV)/.dev
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist loadfile --cov --cov-report=term

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(INPUTS) | $(BIN)/python
	@echo "Installing prune4rel into $(VENV) (once; PyTorch makes it a minute or more) ..."
	$(PIP) --editable ".[report]"
	@touch $@

$(VENV)/.dev: $(INPUTS) | $(BIN)/python
	@echo "Installing prune4rel and its development tools into $(VENV) (once) ..."
	$(PIP) --editable ".[dev]"
	@touch $@ $(VENV)/.core

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build dist
