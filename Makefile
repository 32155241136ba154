# Every target sets up .venv by itself, with the interpreter PYTHON: 3.10 to 3.13.
PYTHON ?= python3
BIN := .venv/bin
# PYTHONWARNINGS: setuptools warns of every editable installation.
INSTALL := PYTHONWARNINGS=ignore $(BIN)/pip install --quiet --constraint constraints.txt --no-build-isolation --editable

.PHONY: demo test test-slow test-backends test-bulk test-types test-nematus check format bench compare reproduce docs patches lock clean

.venv/installed: setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade --constraint constraints.txt pip setuptools
	$(INSTALL) '.[nmt,dev,docs]'
	touch $@

# `python -m nmt.bulk` has an environment of its own.
.venv-bulk/installed: setup.cfg pyproject.toml constraints-bulk.txt
	$(PYTHON) -m venv .venv-bulk
	.venv-bulk/bin/pip install --quiet --upgrade --constraint constraints-bulk.txt pip setuptools
	PYTHONWARNINGS=ignore .venv-bulk/bin/pip install --quiet --constraint constraints-bulk.txt --no-build-isolation --editable '.[bulk]'
	touch $@

# Pyright, to read code that uses the layer.
.venv-types/installed:
	$(PYTHON) -m venv .venv-types
	.venv-types/bin/pip install --quiet basedpyright
	touch $@

# Environments of the tests of the layer: other backends of Keras, its next version, and the oldest versions.
BACKENDS := jax torch nightly oldest
# constraints.txt has the newest Keras and JAX for each version of Python.
jax_PACKAGES := --constraint constraints.txt keras jax flatbuffers
torch_PACKAGES := --constraint constraints.txt keras torch==2.15.0
nightly_PACKAGES := tensorflow==2.22.0rc0
oldest_PACKAGES := keras==3.9.2 tensorflow==2.16.2
jax_BACKEND := jax
torch_BACKEND := torch

# Make would delete these marks, and install everything again.
.PRECIOUS: .venv-%/installed

.venv-%/installed: setup.cfg pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/pip install --quiet --upgrade pip setuptools
	.venv-$*/bin/pip install --quiet $($*_PACKAGES) packaging pytest pytest-xdist
	$(if $(filter nightly,$*),.venv-$*/bin/pip uninstall --quiet --yes keras && .venv-$*/bin/pip install --quiet --upgrade --pre keras-nightly)
	PYTHONWARNINGS=ignore .venv-$*/bin/pip install --quiet --no-build-isolation --no-deps --editable .
	touch $@

# Locks the newest allowed version of every dependency, for all supported versions of Python.
EXTRAS := nmt serving zstd onnx ctranslate2 hub bench docs lock dev
lock: .venv/installed
	$(INSTALL) '.[lock]'
	$(BIN)/uv pip compile setup.cfg $(patsubst %,--extra %,$(EXTRAS)) --universal --python-version 3.10 --upgrade \
		--no-annotate --custom-compile-command "make lock" --quiet --output-file constraints.txt
	$(BIN)/uv pip compile setup.cfg --extra bulk --extra lock --universal --python-version 3.10 --upgrade \
		--no-annotate --custom-compile-command "make lock" --quiet --output-file constraints-bulk.txt

# Each process runs whole files, so that it makes what the tests of a file share only once. Three keep two
# cores busy: tests wait for processes that they start.
test: check
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

# `make test-slow GROUP=docs` runs one group; docs/maintainers/slow-tests.md says what each guards.
docs_TESTS := tests/test_docs.py tests/test_site.py tests/test_extras.py
layer_TESTS := tests/rmsnorm_tf --ignore=tests/rmsnorm_tf/conversion
conversion_TESTS := tests/rmsnorm_tf/conversion
models_TESTS := tests/nmt/model tests/nmt/decoding tests/nmt/nematus_models tests/nmt/test_nematus_equality.py tests/nmt/test_golden_models.py
training_TESTS := tests/nmt/training tests/nmt/test_reliability.py
commands_TESTS := tests/nmt/commands tests/nmt/test_main.py tests/nmt/test_load_tensorflow.py
serving_TESTS := tests/nmt/serving --ignore=tests/nmt/serving/test_limits.py --ignore=tests/nmt/serving/test_load.py
# Alone, because they measure how long callers wait.
load_TESTS := tests/nmt/serving/test_limits.py tests/nmt/serving/test_load.py -n 0
bulk_TESTS := tests/nmt/bulk
patches_TESTS := tests/test_patched_nmt.py
translation_TESTS := tests/experiments/translation tests/benchmarks
experiments_TESTS := tests/experiments --ignore=tests/experiments/translation
GROUPS := docs layer conversion models training commands serving load bulk patches translation experiments
GROUP ?= $(GROUPS)

test-slow: $(GROUP:%=test-slow-%)

test-slow-%: .venv/installed
	$(if $($*_TESTS),,$(error there is no group $*; the groups are $(GROUPS)))
	$(INSTALL) '.[ctranslate2,hub,onnx]'
	$(BIN)/python -m pytest -n 2 -m slow $($*_TESTS)

# Each file in a process of its own: TensorFlow keeps the programs of all trainings, which would fill the memory.
test-slow-experiments: .venv/installed
	grep -rlE "mark\.slow|tests\.parameters" $(filter-out --ignore=%,$(experiments_TESTS)) --include="test_*.py" --exclude-dir=translation \
		| xargs -n 1 -P 2 sh -c '$(BIN)/python -m pytest -q -m slow $$0 || [ $$? = 5 ]'

# One alone: `make test-backends BACKENDS=jax`. Each backend also loads the models that those before it have saved.
test-backends: $(BACKENDS:%=test-backend-%)

test-backend-%: .venv-%/installed
	KERAS_BACKEND=$(or $($*_BACKEND),tensorflow) JAX_ENABLE_X64=1 BACKENDS_FOLDER=$(CURDIR)/build/backends \
		.venv-$*/bin/python -m pytest -n 2 -W ignore tests/rmsnorm_tf

test-bulk: .venv/installed .venv-bulk/installed
	BULK_PYTHON=$(CURDIR)/.venv-bulk/bin/python $(BIN)/python -m pytest -m "slow or not slow" tests/nmt/bulk

test-types: .venv/installed .venv-types/installed
	PYRIGHT_PYTHON=$(CURDIR)/.venv-types/bin/python $(BIN)/python -m pytest tests/rmsnorm_tf/test_types.py

# Against the real Nematus: NEMATUS=/path/to/checkout NEMATUS_PYTHON=/path/to/python make test-nematus
test-nematus: .venv/installed
	$(BIN)/python -m pytest -rs tests/nmt/test_nematus_live.py tests/patches/test_nematus_live.py

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# ---- demo: from nothing to a served translation, in build/demo ----

DEMO := build/demo
IN_DEMO := cd $(DEMO) && $(CURDIR)/$(BIN)/python

demo: $(DEMO)/served.txt

# A copy of the baseline, patched.
$(DEMO)/patched.txt: $(shell find nmt rmsnorm_tf patches/nmt patches/apply.py -type f -not -name '*.pyc') examples/demo.json | .venv/installed
	rm -rf $(DEMO)
	mkdir -p $(DEMO)
	cp -r nmt $(DEMO)/nmt
	$(BIN)/python patches/apply.py apply $(DEMO)
	$(BIN)/python patches/apply.py status $(DEMO) > $@

$(DEMO)/vocab/target.model: $(DEMO)/patched.txt
	$(IN_DEMO) -m nmt corpus demo --to corpus
	$(IN_DEMO) -m nmt vocab --source_dataset corpus/train.en --target_dataset corpus/train.de --to vocab --size 300

$(DEMO)/test.translated: $(DEMO)/vocab/target.model
	$(IN_DEMO) -m nmt train --model model --config $(CURDIR)/examples/demo.json
	$(IN_DEMO) -m nmt translate --model model --input corpus/test.en --output test.translated -n

$(DEMO)/saved_model/saved_model.pb: $(DEMO)/test.translated
	cd $(DEMO) && $(CURDIR)/$(BIN)/sacrebleu corpus/test.de -i test.translated -m bleu chrf --format text
	rm -rf $(DEMO)/saved_model
	$(IN_DEMO) -m nmt export --model model --to saved_model -n

# Python with the libraries but without this project: -S skips the editable install. serve.py checks that.
ISOLATED = cd $(DEMO)/saved_model && PYTHONPATH=$$(echo $(CURDIR)/.venv/lib/python*/site-packages) $(CURDIR)/$(BIN)/python -S

$(DEMO)/served.txt: $(DEMO)/saved_model/saved_model.pb examples/serve.py examples/sentences.en
	($(ISOLATED) $(CURDIR)/examples/serve.py . --without rmsnorm_tf nmt) < examples/sentences.en > $(DEMO)/served.part
	$(IN_DEMO) -m nmt translate --model model --input $(CURDIR)/examples/sentences.en --output here.txt -n
	cmp $(DEMO)/served.part $(DEMO)/here.txt
	mv $(DEMO)/served.part $@
	paste -d '\n' examples/sentences.en $@

bench: .venv/installed
	$(INSTALL) '.[bench]'
	mkdir -p build
	$(BIN)/python benchmarks/layer.py --json build/layer.json
	$(BIN)/python benchmarks/fit.py --json build/fit.json
	$(BIN)/python benchmarks/recurrent.py --json build/recurrent.json
	$(BIN)/python benchmarks/tables.py build/layer.json build/fit.json build/recurrent.json

# Two commits in turn; it fails where HEAD, by default the working tree, is slower: make compare BASE=main
HEAD ?=
ONLY ?=
ACCEPT ?=

compare: .venv/installed
	$(if $(BASE),,$(error give the commit to compare with: make compare BASE=main))
	$(if $(RT),chrt -f 10) $(BIN)/python -m benchmarks.compare "$(BASE)" $(if $(HEAD),--head "$(HEAD)") --only "$(ONLY)" --accept "$(ACCEPT)" \
		$(if $(ROUNDS),--rounds "$(ROUNDS)")

# The experiments of the papers: TASK is a folder of experiments/, DATA a name that the task knows or a folder of files.
# Runs lie in runs/reproduce; an interrupted one continues.
TASK ?= translation
DATA ?=

reproduce: .venv/installed
	$(BIN)/python -m experiments --task "$(TASK)" "$(DATA)"

# The site, in build/site. A broken link fails.
docs: .venv/installed
	$(BIN)/python docs/site.py
	$(BIN)/zensical build --strict --clean

# NEMATUS=/path/to/clone make patches regenerates the insertions into Nematus too.
patches: .venv/installed
	$(BIN)/python patches/regenerate.py
	$(BIN)/python patches/regenerate_nematus.py $(NEMATUS)

# What make builds. Models and runs of people lie in runs/, which stays.
clean:
	rm -rf .venv .venv-* .cache .*_cache build
