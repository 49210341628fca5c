# Two commands matter: `make demo` runs the main job end to end, `make test` every check that CI runs.
# Both install into .venv first; a stamp there remembers what was installed and keeps them from doing it again.

PYTHON ?= python3
VENV := .venv
# Of `make demo`: the device on which the converted models run.
DEVICE ?= cpu
BIN := $(VENV)/bin
# Python compiles the files that it imports, a small part of the 20,000 that are installed.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt
NATIVE := CMakeLists.txt $(shell find backends/native -name "*.cc" -o -name "*.h" -o -name CMakeLists.txt)
OLDER_JAX := 0.9.0
SANITIZERS := address thread
INSTALLED_FROM := pyproject.toml constraints.txt $(NATIVE)

export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# Hundreds of processes that tests start import the frameworks, which takes twice as long from their sources.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test lint types suite sanitize older-jax links format docs serve-docs clean

demo: $(VENV)/all.stamp
	$(BIN)/trivium demo --device $(DEVICE)

# The native code is checked while the packages are installed, and the types while the suite runs.
test:
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target $(VENV)/dev.stamp sanitize
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory --jobs=2 types suite

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp links
	$(BIN)/pyright --warnings

# One file stays in one worker: its fixtures run once and its framework is loaded once.
suite: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n 2 --dist loadfile --durations=15

# The native runtime's stress under AddressSanitizer with UndefinedBehaviorSanitizer, and under ThreadSanitizer.
sanitize: $(addprefix sanitize-,$(SANITIZERS))

sanitize-%:
	@cmake -S . -B build/sanitize-$* -DTRIVIUM_SANITIZE=$* > /dev/null
	@cmake --build build/sanitize-$* --target trivium_stress > /dev/null
	build/sanitize-$*/backends/native/trivium_stress

# The checks of the device of JAX with an older JAX, in an environment of its own.
older-jax: $(VENV)/dev.stamp build/older-jax/stamp
	TRIVIUM_OLDER_JAX=build/older-jax/bin/python $(BIN)/python -m pytest -q tests/jax/test_older.py

build/older-jax/stamp: $(INSTALLED_FROM)
	$(PYTHON) -m venv build/older-jax
	build/older-jax/bin/python -m pip install --quiet --editable . jax==$(OLDER_JAX) flax optax flatbuffers pytest
	@touch $@

format: $(VENV)/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The pages that are written from the code (after a new op, rule or record), and the manual as a site in out/manual.
docs: $(VENV)/dev.stamp
	$(BIN)/python -m docs.generate
	$(BIN)/python -m sphinx -q -W --keep-going -c docs -d build/manual . out/manual

serve-docs: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory out/manual 8000

# The rooms joined as the installed package joins them, for tools that read files and know no import hooks.
links:
	@mkdir -p build/links/trivium
	@find build/links/trivium -xtype l -delete
	@for room in ir importers compiler backends; do ln -sfn ../../../$$room build/links/trivium/$$room; done
	@for entry in src/trivium/*; do ln -sfn ../../../$$entry build/links/trivium/; done

clean:
	rm -rf build out $(VENV)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/all.stamp: $(INSTALLED_FROM) | $(BIN)/python
	@echo "Installing Trivium and the frameworks into $(VENV); the first time takes some minutes."
	$(PIP_INSTALL) --editable '.[all]'
	@touch $@

$(VENV)/dev.stamp: $(INSTALLED_FROM) | $(BIN)/python
	@echo "Installing Trivium, the frameworks and the development tools into $(VENV); the first time takes some minutes."
	$(PIP_INSTALL) --editable '.[all,dev]'
	@touch $@ $(VENV)/all.stamp
