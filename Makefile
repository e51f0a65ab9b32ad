# `make demo` trains, evaluates, exports and translates; `make test` checks.
# `make golden` compares with every golden number on both backends.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
RUN := runs/demo

.PHONY: demo test golden lint types clean

demo: $(INSTALLED)
	$(BIN)/luong-keras train --preset demo --run-dir $(RUN)
	$(BIN)/luong-keras translate --run-dir $(RUN) --check-export

test: lint
	KERAS_BACKEND=tensorflow $(BIN)/python -m pytest -n 2 --dist loadfile
	KERAS_BACKEND=jax $(BIN)/python -m pytest -n 2 --dist loadfile -m "not tensorflow and not slow"

golden: $(INSTALLED)
	KERAS_BACKEND=tensorflow $(BIN)/python -m pytest -n 2 tests/golden
	KERAS_BACKEND=jax $(BIN)/python -m pytest -n 2 tests/golden -m "not tensorflow"

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# Everything but the inside of the layers; half a minute the first time.
types: $(INSTALLED)
	$(BIN)/mypy

$(INSTALLED): setup.py
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $(INSTALLED)

clean:
	rm -rf .venv runs build *.egg-info
