# `make demo` trains, evaluates, exports and translates.
# `make test` takes minutes; `make test-all` runs everything in two hours.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed
TORCH := .venv-torch
# Options for pip, such as --index-url for wheels without CUDA.
TORCH_PIP ?=
RUN := runs/demo

# Without bytecode, each process compiles TensorFlow's modules when it imports them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo examples test test-all test-optimized test-torch test-versions \
	golden docs dist test-dist lint types mutations clean

demo: $(INSTALLED)
	$(BIN)/luong-keras train --preset demo --run-dir $(RUN)
	$(BIN)/luong-keras translate --run-dir $(RUN) --check-export

# Programs that train within minutes on a CPU; their runs are in runs/.
EXAMPLES := quickstart time_series handwriting long_speech
EXAMPLES += beam_search_functional beam_search_transformer
EXAMPLES += pronunciation inflection dates copying_summariser

examples: SHELL := bash
examples: $(INSTALLED)
	set -e; for name in $(EXAMPLES); do \
		echo "== $$name"; time -p $(BIN)/python examples/$$name.py; \
	done

PYTEST_2 := bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
PYTEST := .venv/$(PYTEST_2)

# Half of a test's time is compilation, which is faster without these emitters.
FAST := XLA_FLAGS=--xla_cpu_use_fusion_emitters=false

test: lint types
	$(FAST) KERAS_BACKEND=tensorflow $(PYTEST) -m "not slow"
	$(FAST) KERAS_BACKEND=jax $(PYTEST) -m "not slow and not tensorflow"

# Every test on both backends, most tests on torch, the wheel in an empty folder,
# the demonstration, and the mutations that the tests must detect.
test-all: lint types
	$(FAST) KERAS_BACKEND=tensorflow $(PYTEST)
	$(FAST) KERAS_BACKEND=jax $(PYTEST) -m "not tensorflow"
	$(MAKE) test-optimized
	$(MAKE) test-torch
	$(BIN)/python -m pytest -m stranger tests/stranger
	$(MAKE) demo RUN=$(RUN)-test-all
	$(MAKE) mutations

# The golden and training tests with the optimisations of JAX. All other tests
# disable most of them, because they slow compilation down.
test-optimized: export JAX_DISABLE_MOST_OPTIMIZATIONS = 0
test-optimized: $(INSTALLED)
	KERAS_BACKEND=jax $(PYTEST) tests/golden tests/training -m "not tensorflow"

# The tests that `make test` runs on JAX, and a training run of the authors'
# program.
test-torch: export KERAS_BACKEND = torch
test-torch: $(TORCH)/installed
	$(TORCH)/$(PYTEST_2) -m "not slow and not tensorflow"
	$(TORCH)/$(PYTEST_2) -m "slow and not tensorflow" \
		tests/golden/test_training.py

# The oldest versions that setup.py allows, and the versions of a hosted notebook,
# each in a separate environment (`PYTHON=python3.12` chooses another Python for
# both). Each environment reads the files that the other one saved.
VERSIONS := oldest colab
VERSION_TESTS := tests/layers tests/ops tests/models tests/decoding \
	tests/training tests/golden tests/saved_model tests/text \
	tests/files tests/test_config.py tests/test_config_values.py \
	tests/test_private_apis.py tests/test_public_names.py
# XLA ends the process if it does not know a flag.
test-versions: export XLA_FLAGS =
test-versions: $(VERSIONS:%=.venv-%/installed)
	rm -rf build/versions
	set -e; for name in $(VERSIONS); do \
		.venv-$$name/bin/python -m tests.versions.exchange write \
			build/versions/$$name; \
	done
	set -e; for name in $(VERSIONS); do for other in $(VERSIONS); do \
		.venv-$$name/bin/python -m tests.versions.exchange read \
			build/versions/$$other; \
	done; done
	set -e; for name in $(VERSIONS); do \
		KERAS_BACKEND=tensorflow .venv-$$name/$(PYTEST_2) \
			-m "not slow" $(VERSION_TESTS); \
		KERAS_BACKEND=jax .venv-$$name/$(PYTEST_2) \
			-m "not slow and not tensorflow" \
			tests/layers tests/ops tests/models tests/decoding; \
	done

.venv-%/installed: tests/versions/%.txt setup.py
	$(PYTHON) -m venv --clear .venv-$*
	.venv-$*/bin/python -m pip install --quiet --upgrade pip
	.venv-$*/bin/python -m pip install --quiet -r $<
	.venv-$*/bin/python -m pip install --quiet --dry-run \
		--report .venv-$*/report.json ".[train]"
	.venv-$*/bin/python tests/versions/check_install.py .venv-$*/report.json \
		$(if $(filter oldest,$*),--bare)
	.venv-$*/bin/python -m pip install --quiet -r tests/versions/test_tools.txt \
		--constraint $< --editable ".[train,text]"
	touch $@

# The site, offline; warnings are errors. Notebooks run if their code changed.
docs: $(INSTALLED)
	TF_CPP_MIN_LOG_LEVEL=3 KERAS_BACKEND=tensorflow $(BIN)/sphinx-build \
		--quiet --fail-on-warning --keep-going docs build/site
	@echo "build/site/index.html"

# Wheels and source distributions of the library and the client.
dist: $(INSTALLED)
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --outdir dist export/client
	$(BIN)/python -m twine check --strict dist/*

# The wheel in a new environment, with the newest packages and a notebook's.
test-dist: $(INSTALLED)
	$(BIN)/python -m pytest -m stranger tests/stranger
	LUONG_KERAS_CONSTRAINTS=$(CURDIR)/tests/versions/colab.txt \
		$(BIN)/python -m pytest -m stranger tests/stranger/test_stranger.py

golden: $(INSTALLED)
	$(FAST) KERAS_BACKEND=tensorflow $(PYTEST) tests/golden
	$(FAST) KERAS_BACKEND=jax $(PYTEST) tests/golden -m "not tensorflow"

mutations: $(INSTALLED)
	$(FAST) $(BIN)/python -m tests.mutations.listed --jobs 2

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

# Everything except the inside of the layers; half a minute the first time.
types: $(INSTALLED)
	$(BIN)/mypy

$(INSTALLED): setup.py export/client/pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --no-compile --editable ".[dev]" \
		--editable "export/client[grpc]"
	touch $(INSTALLED)

# torch in addition to all packages of .venv.
$(TORCH)/installed: $(INSTALLED)
	$(BIN)/python -m venv $(TORCH)
	$(TORCH)/bin/python -m pip install --quiet $(TORCH_PIP) \
		"$$(sed -n 's/^TORCH = "\(.*\)".*/\1/p' setup.py)"
	$(BIN)/python -c "import site; folder, = site.getsitepackages(); \
		print(f'import site; site.addsitedir({folder!r})')" > beside.pth
	mv beside.pth "$$($(TORCH)/bin/python -c \
		'import site; print(*site.getsitepackages())')"
	touch $(TORCH)/installed

clean:
	rm -rf .venv $(TORCH) runs build *.egg-info
