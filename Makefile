# Everything a contributor runs. `make demo` and `make test` need only Python 3.11+ and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: demo test lint types test-vllm bench clean

$(VENV)/installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("nameplate needs Python 3.11 or newer; set PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

test: $(VENV)/installed lint types  ## lint, strict types, then every test that needs no model server
	$(BIN)/pytest

lint: $(VENV)/installed
	$(BIN)/ruff check src
	$(BIN)/ruff format --check src

types: $(VENV)/installed
	$(BIN)/mypy
