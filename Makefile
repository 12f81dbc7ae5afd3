# Two commands do all the set-up: `make demo` shows the tool at work, `make test` checks everything.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := python -m pip install --quiet --disable-pip-version-check
INPUTS := pyproject.toml constraints.txt
LOWEST := .venv-lowest
OTHERS := .venv-bridges
QUICK  := tests/test_*.py tests/greedy tests/methods/test_all_methods.py tests/data README.md CONTRIBUTING.md
TESTS  :=

.PHONY: demo test quick dist test-lowest test-bridges lint types unit docs format clean

demo: $(VENV)/.core
	@$(BIN)/prune4rel demo

test: lint types docs unit

quick: lint types
	$(BIN)/pytest --quiet --numprocesses 2 --dist loadfile $(QUICK) $(TESTS)

test-lowest: $(LOWEST)/.done
	$(LOWEST)/bin/pytest --numprocesses auto --maxprocesses 4 --dist loadfile -W default::DeprecationWarning

# beside the libraries that prune4rel has clothes and bridges for; FiftyOne's are many, and its tests are skipped without
test-bridges: $(OTHERS)/.done
	$(OTHERS)/bin/pytest tests/test_sklearn.py tests/torch tests/test_bridges.py tests/exporting -W default

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

unit: $(VENV)/.dev
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist loadfile --cov --cov-report=term

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

dist: $(VENV)/.dev
	.ci/dist

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# pip reads groups of dependencies from 25.1 on
$(VENV)/.pip $(LOWEST)/.pip $(OTHERS)/.pip:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/$(PIP) "pip>=25.1"
	@touch $@

$(VENV)/.core: $(INPUTS) | $(VENV)/.pip
	@echo "Installing prune4rel into $(VENV) (once; PyTorch makes it a minute or more) ..."
	$(BIN)/$(PIP) --constraint constraints.txt --editable ".[train,report]"
	@touch $@

$(VENV)/.dev: $(INPUTS) | $(VENV)/.pip
	@echo "Installing prune4rel and its development tools into $(VENV) (once; a few minutes) ..."
	$(BIN)/$(PIP) --constraint constraints.txt --editable . --group dev
	@touch $@ $(VENV)/.core

$(LOWEST)/.done: $(INPUTS) tests/lowest.py | $(LOWEST)/.pip
	$(PYTHON) tests/lowest.py > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/$(PIP) --constraint $(LOWEST)/constraints.txt --editable . --group test
	@touch $@

$(OTHERS)/.done: $(INPUTS) | $(OTHERS)/.pip
	$(OTHERS)/bin/$(PIP) --constraint constraints.txt --editable . --group test --group bridges
	@touch $@

clean:
	rm -rf $(VENV) $(LOWEST) $(OTHERS) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build dist
