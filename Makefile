# make figures    the figures of the default config, in results/
# make report     the same and results/report.html, one page to read and pass on
# make docs       the same and the documentation site, build/site/index.html
# make test       the tests; CONTRIBUTING.md has longer ones
# make study      a study of studies/, and keeps its results there: NAME=full_size, small, … (minutes to
#                 hours; resumes; DATA=/a/folder has the raw files, or they are downloaded)
# make bench      the kernel against every package that computes one: time, memory, a figure (minutes)
# make gpu        a GPU against the CPU, and its speed: docs/gpu.md; at most half an hour.
#                 Without a GPU: its code on the CPU, at small size (a minute)
# make lock       exact versions of all packages but torch, with hashes, from pyproject.toml
# Each sets up .venv by itself the first time; what tests need is installed by the first that tests.
# Any Python from 3.11 on: make PYTHON=python3.12 figures
PYTHON ?= $(shell command -v python3.11 || command -v python3)
CORES  ?= $(shell getconf _NPROCESSORS_ONLN)
VERSION := import sys; print(*sys.version_info[:2], sep=".")
SYSTEM := import platform as p; print(p.system().lower(), p.machine(), sep="-")
LOCKED := locked/$(shell $(PYTHON) -c '$(SYSTEM)')-py$(subst .,,$(shell $(PYTHON) -c '$(VERSION)'))
PIP    := .venv/bin/python -m pip install --quiet --disable-pip-version-check
READY  := .venv/.ready
TESTED := .venv/.ready-to-test

.PHONY: figures report docs test study bench gpu lock
# The paper's own figures first.
PAPERS := $(foreach n,1 2 3 4,results/fig$(n).pdf)
figures: $(READY)
	.venv/bin/snakemake --cores $(CORES) --prioritize $(PAPERS)

# The tables by name: where the figures are there, nothing else asks for a lost one.
report: $(READY)
	.venv/bin/snakemake --cores $(CORES) all results/conditioning.csv results/angles.csv
	.venv/bin/snakemake --report results/report.html

docs: report $(TESTED)
	.venv/bin/python docs/site/build.py

# What is kept is laid into runs/NAME first; of a study under way, job files once their samples are there.
DATA ?= data
STUDY := .venv/bin/snakemake --cores $(CORES)
OF_IT = --configfile studies/$(NAME)/config.yaml --directory runs/$(NAME) --config data_dir=$(DATA)
STUDIES := $(notdir $(patsubst %/config.yaml,%,$(wildcard studies/*/config.yaml)))
LAY = .venv/bin/python -m ntkcond.studies lay $(NAME)
study: $(READY)
	@$(if $(filter $(NAME),$(STUDIES)),,$(error make study NAME=…: one of $(STUDIES)))
	$(LAY) || { $(STUDY) samples $(OF_IT) && $(LAY); }
	$(STUDY) kept $(OF_IT)
	.venv/bin/python -m ntkcond.studies keep $(NAME)

bench: $(READY)
	.venv/bin/python benchmarks/kernel.py

# `make gpu LIMIT=540` stops earlier, in seconds; STEPS=table_1 runs that alone, and jobs resume.
LIMIT ?= 1800
gpu: $(TESTED)
	PYTHON=.venv/bin/python LIMIT=$(LIMIT) benchmarks/gpu.sh $(STEPS)

# One more than processors: some tests wait, for a Slurm or a run that is killed.
WORKERS ?= $(shell expr $(CORES) + 1)
test: $(TESTED)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/python -m pytest --numprocesses $(WORKERS) --no-loadscope-reorder

# Rebuilt only when the versions change.
$(READY): pyproject.toml $(wildcard $(LOCKED).txt)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "ntkcond needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv || \
	  { echo "Python's venv module is missing (on Debian: apt install python3-venv)"; exit 1; }
	@$(if $(wildcard $(LOCKED).txt),$(PIP) --require-hashes --no-deps -r $(LOCKED).txt)
	$(PIP) --editable '.[slurm]'
	@touch $@

$(TESTED): $(READY)
	@$(if $(wildcard $(LOCKED)-test.txt),$(PIP) --require-hashes --no-deps -r $(LOCKED)-test.txt)
	$(PIP) --editable '.[test]'
	@touch $@

# Exact versions of all packages but torch, with hashes for this system: locked/README.md.
LOCK := .venv/bin/uv pip compile pyproject.toml --override locked/without-torch.txt --no-header \
  --no-annotate --quiet --python-version $(shell $(PYTHON) -c '$(VERSION)')
lock: $(READY)
	$(PIP) uv
	$(LOCK) --upgrade --universal --extra test -o locked/versions.txt
	$(LOCK) -c locked/versions.txt --generate-hashes --extra slurm -o $(LOCKED).txt
	$(LOCK) -c locked/versions.txt --generate-hashes --extra test -o $(LOCKED)-test.txt
