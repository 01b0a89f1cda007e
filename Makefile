# Everything a newcomer needs: `make demo` and `make test`. Both make .venv by themselves.

VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-ray check setup clean

demo: setup ## the main job, end to end, on the example system
	scripts/demo

test: check ## all checks and tests
	scripts/test

test-ray: setup ## the tests that need Ray, which it installs
	$(BIN)/python -m pip install --quiet 'ray>=2.52'
	$(BIN)/python -m pytest tests/nmt_core/jobs/test_remote.py

check: setup ## lint, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

setup: ## the virtual environment
	scripts/setup

clean:
	rm -rf $(VENV) runs build .mypy_cache .ruff_cache .pytest_cache .hypothesis
