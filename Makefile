# Two commands do all the set-up: `make demo` shows the tool at work, `make test` checks everything.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := python -m pip install --quiet --disable-pip-version-check
INPUTS := pyproject.toml constraints.txt
LOWEST := .venv-lowest
OTHERS := .venv-bridges
AUDIT  := .venv-audit
SLOW   := $(foreach name,array_path bridges machine release sklearn wheel,tests/test_$(name).py) tests/data/test_cifar.py
QUICK  := $(filter-out $(SLOW),$(wildcard tests/test_*.py tests/data/test_*.py)) \
          tests/greedy/test_groups.py tests/greedy/test_lazy.py tests/methods/test_all_methods.py CONTRIBUTING.md
TESTS  :=
SECONDS := 3600
SHARED := --numprocesses auto --maxprocesses 4 --dist loadfile

.PHONY: demo test quick dist test-lowest test-bridges lint types unit coverage fuzz scan audit lock docs format clean

demo: $(VENV)/.core
	@$(BIN)/prune4rel demo

test: lint types docs unit

quick: lint types
	$(BIN)/pytest --quiet --numprocesses 2 --dist loadfile $(QUICK) $(TESTS)

# (Ray 2.40 leaves processes to the collector of garbage, which warns)
test-lowest: $(LOWEST)/.done
	$(LOWEST)/bin/pytest $(SHARED) -W default::DeprecationWarning -W default::pytest.PytestUnraisableExceptionWarning

# beside the libraries that prune4rel has clothes and bridges for; FiftyOne's are many, and its tests are skipped without
test-bridges: $(OTHERS)/.done
	$(OTHERS)/bin/pytest tests/test_sklearn.py tests/torch tests/test_bridges.py tests/exporting -W default

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

unit: $(VENV)/.dev
	$(BIN)/pytest $(SHARED) --durations 25

# the same, and which lines no test reaches; takes a third longer
coverage: $(VENV)/.dev
	$(BIN)/pytest $(SHARED) --cov --cov-report=term

# damages files and asks nonsense of the command line until it is stopped; SECONDS=600 for ten minutes
fuzz: $(VENV)/.dev
	PRUNE4REL_FUZZ_SECONDS=$(SECONDS) $(BIN)/pytest tests/fuzz

# the source's own risks, and the bill of materials of an audited installation
scan: $(AUDIT)/.done
	$(AUDIT)/bin/bandit --quiet --recursive src --configfile pyproject.toml
	@mkdir -p build
	$(AUDIT)/bin/cyclonedx-py requirements --output-reproducible --output-file build/sbom.json requirements.lock

# the same, and what is known against it; this asks the network
audit: scan
	$(AUDIT)/bin/pip-audit --require-hashes --disable-pip --requirement requirements.lock

# which versions, with their hashes, an audited installation gets: those of the tests, PyTorch excepted
lock: $(AUDIT)/.done
	printf 'torch\ntorchvision\n' > $(AUDIT)/excluded.txt
	$(AUDIT)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    --extra train --extra vision --extra text --extra report --extra review --extra onnx \
	    --constraints constraints.txt --excludes $(AUDIT)/excluded.txt --upgrade --output-file requirements.lock pyproject.toml

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

dist: $(VENV)/.dev
	.ci/dist

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# pip reads groups of dependencies from 25.1 on
$(VENV)/.pip $(LOWEST)/.pip $(OTHERS)/.pip $(AUDIT)/.pip:
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

$(AUDIT)/.done: pyproject.toml constraints.txt | $(AUDIT)/.pip
	$(AUDIT)/bin/$(PIP) --constraint constraints.txt --group audit
	@touch $@

clean:
	rm -rf $(VENV) $(LOWEST) $(OTHERS) $(AUDIT) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage build dist
