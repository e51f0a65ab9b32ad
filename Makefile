# `make demo` trains, evaluates, exports and translates.
# `make test` checks in minutes; `make test-all` runs everything, an hour of it.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
RUN := runs/demo

.PHONY: demo test test-all golden lint types mutations clean

demo: $(INSTALLED)
	$(BIN)/luong-keras train --preset demo --run-dir $(RUN)
	$(BIN)/luong-keras translate --run-dir $(RUN) --check-export

PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# Half of a test's time is compilation; without these emitters it is shorter.
test: export XLA_FLAGS = --xla_cpu_use_fusion_emitters=false
test: lint types
	KERAS_BACKEND=tensorflow $(PYTEST) -m "not slow"
	KERAS_BACKEND=jax $(PYTEST) -m "not slow and not tensorflow"

# Every case on both backends, the wheel in an empty place, the demonstration,
# and the mistakes that the tests must notice.
test-all: lint types
	KERAS_BACKEND=tensorflow $(PYTEST)
	KERAS_BACKEND=jax $(PYTEST) -m "not tensorflow"
	$(BIN)/python -m pytest -m stranger tests/stranger
	$(MAKE) demo RUN=$(RUN)-test-all
	$(MAKE) mutations

golden: $(INSTALLED)
	KERAS_BACKEND=tensorflow $(PYTEST) tests/golden
	KERAS_BACKEND=jax $(PYTEST) tests/golden -m "not tensorflow"

mutations: $(INSTALLED)
	$(BIN)/python -m tests.mutations.listed

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Everything but the inside of the layers; half a minute the first time.
types: $(INSTALLED)
	$(BIN)/mypy

$(INSTALLED): setup.py
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[dev]"
	touch $(INSTALLED)

clean:
	rm -rf .venv runs build *.egg-info
