# Every target makes its own virtual environment where there is none; pip runs again only when pyproject.toml changes.
# PYTHON=... chooses the interpreter (3.11 or later), VENV=... the environment, JOBS=... how many processes run tests.

VENV ?= .venv
# One more than cores: tests of jobs wait for each other.
JOBS ?= 3
SCREENSHOTS ?= build/screenshots
ARGS ?=

# A distribution's Python is compiled with profile-guided optimization, which pyenv leaves out unless told: the suite takes less CPU time.
CANDIDATES = /usr/bin/python3.11 python3.11 python3.12 python3.13 python3.14 python3 python
CHECK = import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in $(CANDIDATES); do if $$p -c '$(CHECK)' >/dev/null 2>&1; then echo $$p; break; fi; done)

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# The tests start some 150 processes; each would compile the package anew (0.4 s) where bytecode may not be kept.
unexport PYTHONDONTWRITEBYTECODE

.NOTPARALLEL:
.PHONY: help models demo test test-all test-slow test-again installed search nets fuzz bench bench-short bench-peers lint format api errors traced browser notebooks docs clean

help:
	@echo 'make demo       train a LeNet on handwritten digits, under two minutes'
	@echo 'make test       the test suite without the slow tests'
	@echo 'make test-all   the test suite with the slow tests and more random examples'
	@echo 'make test-slow  the slow tests alone (ARGS="--part 3/10": a tenth of them)'
	@echo 'make test-again the part of make test that another Python, jax or effort of XLA may change'
	@echo 'make installed  build a wheel and an sdist, install them into a fresh environment, and test what was installed (PYTHONS=...)'
	@echo 'make search     property tests on fresh random examples, ten times as many, and every numeric derivative (ARGS=--hypothesis-seed=N: the same again)'
	@echo 'make nets       random nets beside the real Paddle 1.8.5 that make bench-peers installed (ARGS="--first 1000 --nets 500")'
	@echo 'make fuzz       10,000 spoiled copies of each kind of file that is read (ARGS="--count 500 text json": fewer, of some kinds)'
	@echo 'make bench      compare with hand-written JAX, and with what make bench-peers installed; docs/benchmarks.md gets the figures'
	@echo 'make bench-short  whether the benchmarks run, in less than a minute'
	@echo 'make bench-peers  install Paddle 1.8.5, torch into $(PEERS), each where it can be'
	@echo 'make models     fetch the OCR models that some tests run (make test does it)'
	@echo 'make lint       ruff and the type checker'
	@echo 'make format     let ruff lay the code out'
	@echo 'make api        write the public surface anew (tests/data/public_api.txt), and docs/compatibility.md'
	@echo 'make errors     write docs/errors-by-op.md anew: how far every op lies from the recordings (some minutes)'
	@echo 'make traced     count anew which functions of JAX compute the same bits as programs (docs/jax-functions.md)'
	@echo 'make notebooks  run the notebooks and keep in them what their cells show'
	@echo 'make docs       the documents as a site, in build/site; fails where a link leads nowhere or a page is not listed'
	@echo 'make browser    pages of programs in a Chromium that is installed; pictures of what was seen are kept in $(SCREENSHOTS)'
	@echo 'make clean      remove the virtual environment and caches'

demo: $(VENV)/.with-demo
	$(VENV)/bin/python -m fluidjax demo $(ARGS)

PYTEST = $(VENV)/bin/python -m pytest -q -n $(JOBS) --dist worksteal

test: $(VENV)/.with-test models
	$(PYTEST) -m 'not slow and not thorough' --hypothesis-profile=few $(ARGS)

test-all: $(VENV)/.with-test models
	$(PYTEST) -m 'not thorough' $(ARGS)

test-slow: $(VENV)/.with-test models
	$(PYTEST) -m 'slow and not thorough' $(ARGS)

test-again: $(VENV)/.with-test models
	$(PYTEST) -m 'not slow and not thorough and not once' --hypothesis-profile=few $(ARGS)

# A wheel, made of the sdist, on the first of PYTHONS, the sdist on the others, each in an environment that has nothing else, and
# tests that need no other file of the tree than their own.
INSTALLED = tests/ir tests/graph tests/look/test_graph.py tests/look/test_folding.py tests/look/test_program.py tests/models/test_lac.py \
	tests/cli/test_terminal.py tests/profiling/test_watch.py tests/backward/test_gradients.py

PYTHONS ?= $(PYTHON)
ALONE = build/installed
QUIET_PIP = -m pip install --quiet --no-compile

installed:
	@rm -rf $(ALONE) && mkdir -p $(ALONE)/tree && cp -r tests pyproject.toml $(ALONE)/tree
	$(firstword $(PYTHONS)) -m venv $(ALONE)/build
	$(ALONE)/build/bin/python $(QUIET_PIP) build
	@$(ALONE)/build/bin/python -m build --outdir $(ALONE)/dist . >$(ALONE)/build.log 2>&1 || { cat $(ALONE)/build.log >&2; exit 1; }
	@set -e; what=whl; for python in $(PYTHONS); do \
		echo "$$what on $$($$python --version)"; \
		rm -rf $(ALONE)/env; $$python -m venv $(ALONE)/env; \
		$(ALONE)/env/bin/python $(QUIET_PIP) $(ALONE)/dist/*.$$what pytest pytest-xdist '$(shell grep -o 'hypothesis==[0-9.]*' pyproject.toml)'; \
		(cd $(ALONE)/tree && ../env/bin/python -m tests.tools.check_installed ../dist/*.whl && \
			../env/bin/python -m pytest -q -n $(JOBS) -m 'not slow and not thorough and not once' --hypothesis-profile=few $(INSTALLED)); \
		what=tar.gz; \
	done

search: $(VENV)/.with-test
	$(VENV)/bin/python -m pytest -q -n $(JOBS) --dist worksteal -m 'hypothesis or thorough' --hypothesis-profile=search $(ARGS)

# Where there is no Paddle, those that were drawn before are compared.
nets: $(VENV)/.with-test
	$(VENV)/bin/python -m tests.random_nets build/nets $(addprefix --paddle ,$(wildcard $(PEERS)/paddle/bin/python)) $(ARGS)

fuzz: $(VENV)/.with-test
	$(VENV)/bin/python -m tests.fuzz $(ARGS)

# Real models that some tests and benchmarks run; without a network those are skipped.
models: $(VENV)/.with-test
	$(VENV)/bin/python tests/tools/fetch_models.py

bench: $(VENV)/.with-demo models
	$(VENV)/bin/python -m benchmarks --page $(ARGS)

bench-short: $(VENV)/.with-test
	$(VENV)/bin/python -m benchmarks --short

# Each peer is installed where it can be, into an environment of its own; one that cannot is left out of the tables.
# Paddle 1.8.5 needs Python 3.8 or older: PADDLE_PYTHON=... names one. TORCH=... is what pip installs for torch.
PEERS ?= .peers
TORCH ?= torch
PADDLE_PYTHON ?= $(shell for p in python3.8 python3.7 $(HOME)/.pyenv/versions/3.8.*/bin/python $(HOME)/.pyenv/versions/3.7.*/bin/python; do \
	if $$p -c 'import venv, ensurepip' >/dev/null 2>&1; then echo $$p; break; fi; done)

bench-peers:
	@if test -n '$(PADDLE_PYTHON)'; then \
		$(PADDLE_PYTHON) -m venv $(PEERS)/paddle && \
		$(PEERS)/paddle/bin/python -m pip install --quiet paddlepaddle==1.8.5 'protobuf<3.21' 'numpy<1.24' && \
		$(PEERS)/paddle/bin/python -c 'import paddle; print("Paddle", paddle.__version__)' || echo 'Paddle 1.8.5 could not be installed'; \
	else echo 'Paddle 1.8.5 needs Python 3.8 with venv and ensurepip: make bench-peers PADDLE_PYTHON=...'; fi
	@$(PYTHON) -m venv $(PEERS)/torch
	@$(PEERS)/torch/bin/python -m pip install --quiet $(TORCH) numpy && \
		$(PEERS)/torch/bin/python -c 'import torch; print("torch", torch.__version__)' || echo 'torch could not be installed'

lint: $(VENV)/.with-lint
	$(VENV)/bin/python -m ruff check .
	$(VENV)/bin/python -m mypy

format: $(VENV)/.with-lint
	$(VENV)/bin/python -m ruff check --fix-only .
	$(VENV)/bin/python -m ruff format .

api: $(VENV)/.with-test
	$(VENV)/bin/python -m tests.test_public_surface

errors: $(VENV)/.with-test
	$(VENV)/bin/python -m tests.ops.errors

traced: $(VENV)/.with-test
	$(VENV)/bin/python -m tests.tracing

notebooks: $(VENV)/.with-test
	$(VENV)/bin/python -m tests.notebooks

docs: $(VENV)/.with-docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs build --quiet --strict
	$(VENV)/bin/python -m website.check build/site

browser: $(VENV)/.with-browser
	SCREENSHOTS='$(SCREENSHOTS)' $(VENV)/bin/python -m pytest -q tests/look/test_browser.py tests/look/test_site_in_browser.py $(ARGS)

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build *.egg-info

# $(VENV)/.with-X: the environment holds fluidjax (editable) and its extra X.
$(VENV)/.with-%: pyproject.toml
	@test -n '$(PYTHON)' || { echo 'no Python 3.11 or later with venv and ensurepip was found; install one, or name it: make PYTHON=...' >&2; exit 1; }
	@test -x $(VENV)/bin/pip || $(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/python -m pip install --quiet --no-compile --editable '.[$*]'
	@touch $@
