# Every target sets up .venv by itself. PYTHON is the interpreter it is made from: 3.10 to 3.13.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-slow check format bench patches clean

.venv/installed: setup.cfg pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable '.[nmt,dev]'
	touch $@

test: check
	$(BIN)/python -m pytest

test-slow: .venv/installed
	$(BIN)/python -m pytest -m slow

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

patches: .venv/installed
	$(BIN)/python patches/regenerate.py

clean:
	rm -rf .venv build
