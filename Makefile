# Short verbs. A fresh machine needs Python 3.11 or newer, a Rust toolchain with a C compiler, and then only
# `make demo` and `make test`. Everything is set up in $(VENV); nothing outside of this folder is changed.

PYTHON ?= python3
VENV ?= .venv
DEMO_STORE ?= build/lighthouse.memkura
LIGHTHOUSE := examples/lighthouse

BIN := $(VENV)/bin
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name '*.sql' -o -name Cargo.toml)

# What maturin sets for its own cargo, set for ours too: otherwise each would build PyO3 again after the other.
export PYO3_PYTHON := $(abspath $(BIN))/python
export PYO3_BUILD_EXTENSION_MODULE := 1
export VIRTUAL_ENV := $(abspath $(VENV))
unexport CONDA_PREFIX

.PHONY: help setup demo test test-rust test-python lint fmt bench golden docs check wheel clean

help:  ## say what the verbs do
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

setup: $(VENV)/.native  ## make the virtual environment, build memkura and install it there

# pip is brought up to date first: the one that comes with Python 3.11 does not know dependency groups.
$(VENV)/.tools: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet 'maturin>=1.14,<2' --group dev
	touch $@

$(VENV)/.native: $(VENV)/.tools $(RUST_SOURCES)
	$(BIN)/maturin develop --profile dev
	touch $@

demo: setup  ## import the Lighthouse memories and answer questions about them
	rm -rf $(DEMO_STORE)
	$(BIN)/memkura import $(LIGHTHOUSE)/memories.jsonl --store $(DEMO_STORE)
	$(BIN)/python $(LIGHTHOUSE)/demo.py $(DEMO_STORE)

test: test-rust test-python  ## the whole test suite

test-rust: setup
	cargo test --locked --workspace

test-python: setup
	$(BIN)/python -m pytest

lint: setup  ## formatting, lints and types; changes nothing
	cargo fmt --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy tests examples benches

fmt: setup  ## format everything
	cargo fmt
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# The rivals of benches/rivals.py are large, so they are not installed here: `pip install --group rivals` does that.
# Instructions are counted the same with SMOKE=1: they are no measure of time. Both cargos ask for the whole workspace, since
# with other features the second would build anew what the first has built.
bench: setup  ## measure time beside rank_bm25, numpy and what else is there; SMOKE=1 only sees that it runs
	cargo bench --locked --workspace $(if $(SMOKE),--profile dev -- --test)
	$(BIN)/python benches/instructions.py --if-present
	$(BIN)/python -m pip install --quiet --group bench
	$(BIN)/python benches/speed.py $(if $(SMOKE),--smoke)
	$(BIN)/python benches/opening.py $(if $(SMOKE),--smoke)
	$(BIN)/python benches/responsiveness.py $(if $(SMOKE),--smoke)
	$(BIN)/python benches/commits.py $(if $(SMOKE),--smoke)
	$(BIN)/python benches/rivals.py $(if $(SMOKE),--smoke)
	$(BIN)/python -m pytest benches $(if $(SMOKE),--benchmark-disable --quiet,--benchmark-only)

golden: setup  ## measure recall on the Lighthouse questions
	$(BIN)/memkura eval $(LIGHTHOUSE)/memories.jsonl $(LIGHTHOUSE)/questions.jsonl

docs: setup  ## run every example in the documents
	$(BIN)/python -m pytest tests/surface tests/test_examples.py

check:  ## everything that must pass before a change goes in
	.ci/run

wheel: $(VENV)/.tools  ## build the wheel that is released
	$(BIN)/maturin build --release --out dist

clean:  ## remove what was built
	rm -rf build dist $(VENV)/.native python/memkura/_core.*.so python/memkura/_core.*.pyd
	cargo clean
