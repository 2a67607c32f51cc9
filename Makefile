# make figures    the figures of the default config, in results/
# make report     the same and results/report.html, one page to read and pass on
# make docs       the same and the documentation site, build/site/index.html
# make test       the tests
# make faults     each rule killed, 120 times in all; 20 full disks, 50 damaged files, eight configs in
#                 turn, and the like (an hour)
# make precision  10,600 NTKs at infinite width against 50 digits (minutes)
# make fuzz       2,000 wrong configs, 50 others in dry runs, 3,600 damaged data files (minutes)
# make full-size  figure 2 of all samples of the paper's data sets, and the claims on them; kept in
#                 docs/full-size (hours, 8 GB of memory; resumes; downloads the data)
# make small      figure 3 and what predicts speed of 10,000 samples each, gradient descent on 512 of
#                 them, kept in docs/full-size (hours; downloads the data)
# make whole      κ of whole data sets in one NTK, and the claims on them, kept in docs/full-size (hours,
#                 18 GB of memory; resumes; downloads the data)
# make table-1    Table 1 of the newest version, one depth of it: DEPTH=3 RATE=32; kept in docs/full-size
#                 (up to an hour each; resumes; downloads MNIST)
# make images     figure 2 and the claims of 2,048 real images each of MNIST and Fashion-MNIST, against
#                 kept numbers (minutes; downloads the images)
# make mutants    tests of the tests: a sample of the mutants of mutmut (half an hour)
# make bench      the kernel against every package that computes one: time, memory, a figure (minutes)
# make gpu        a GPU against the CPU, and its speed: docs/gpu.md; at most half an hour, resumes.
#                 Without a GPU: its code on the CPU, at small size (two minutes)
# make dag        the picture of the rules in docs/extending.md
# make versions   the library as others install it: with the oldest NumPy and SciPy that it allows, and
#                 with the newest (minutes; TORCH='torch==2.6.0' with another torch)
# make lock       exact versions of all packages, with hashes, from pyproject.toml
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

.PHONY: figures report docs test faults precision fuzz mutants full-size small table-1 whole images bench gpu dag versions lock clean-venv
figures: $(READY)
	.venv/bin/snakemake --cores $(CORES)

# The tables by name: where the figures are there, nothing else asks for a lost one.
report: $(READY)
	.venv/bin/snakemake --cores $(CORES) all results/conditioning.csv results/angles.csv
	.venv/bin/snakemake --report results/report.html

docs: report $(TESTED)
	.venv/bin/python docs/site/build.py

faults: $(TESTED)
	NTKCOND_TEST_KILLS=120 NTKCOND_TEST_DISKS=20 NTKCOND_TEST_DAMAGES=50 NTKCOND_TEST_CONFIGS=8 \
	  .venv/bin/python -m pytest -s tests/test_faults.py

precision: $(TESTED)
	NTKCOND_TEST_CASES=2500 .venv/bin/python -m pytest -s tests/ntk/test_infinite_width.py

fuzz: $(TESTED)
	NTKCOND_TEST_CONFIGS=2000 NTKCOND_TEST_DRY_RUNS=50 NTKCOND_TEST_FILES=400 \
	  .venv/bin/python -m pytest -s tests/plan/test_bad_configs.py tests/datasets/test_bad_files.py

# mutmut is not among the locked packages: nothing but this target needs it.
MUTANTS ?= --a-module 18 --seed 1
mutants: $(TESTED)
	$(PIP) "mutmut~=3.8.1"
	nice .venv/bin/python tests/mutants.py $(MUTANTS)

# DATA=/somewhere/else if the raw files are there.
DATA ?= data
# What the network has, as far as it has it: figures say what they lack.
GET := -.venv/bin/snakemake downloads --keep-going --cores $(CORES)
KEPT := fig2.png fig2.pdf fig2.csv claims.csv claims.md costs.csv provenance/fig2.json
full-size: $(READY)
	mkdir -p runs/full-size docs/full-size
	$(GET) --directory runs/full-size --configfile studies/full_size/config.yaml --config data_dir=$(DATA)
	.venv/bin/snakemake --cores $(CORES) --directory runs/full-size \
	  --configfile studies/full_size/config.yaml --config data_dir=$(DATA)
	cp $(addprefix runs/full-size/results/,$(KEPT)) docs/full-size/

# An artefact, from tables that are there.
JOINED := .venv/bin/python -m ntkcond.steps.artefact
# SUBSET=train-clean-100 if that part of LibriSpeech is there. What cannot be had is left out and named.
SUBSET ?= dev-clean
DESCENTS := fig_descent fig_evolution fig_spectrum fig_speed fig_predictors
TRAINED := fig3.png fig3.pdf fig3.csv table_epochs.csv table_epochs.md provenance/fig3.json \
  $(foreach figure,$(DESCENTS),$(figure).pdf $(figure).csv provenance/$(figure).json)
small: $(READY)
	mkdir -p runs/small docs/full-size
	$(GET) --directory runs/small --configfile studies/small/config.yaml --config data_dir=$(DATA) missing=skip \
	  'datasets={librispeech: {subset: $(SUBSET)}}'
	.venv/bin/snakemake --cores $(CORES) results/fig3.pdf results/table_epochs.md \
	  $(DESCENTS:%=results/%.pdf) --directory runs/small \
	  --configfile studies/small/config.yaml --config data_dir=$(DATA) missing=skip \
	  'datasets={librispeech: {subset: $(SUBSET)}}'
	cp $(addprefix runs/small/results/,$(TRAINED)) docs/full-size/
	$(JOINED) claims $(foreach table,fig_descent fig3 table_epochs fig_evolution,\
	  --input $(table) docs/full-size/$(table).csv) --settings '{"only": ["6-bound", "6-descent", \
	  "6-smallest", "6-training", "ours-6-change", "ours-6-kappa", "ours-6-prediction", \
	  "ours-6-residual"]}' --output runs/small/claims_small.csv
	cp runs/small/claims_small.csv runs/small/claims_small.md docs/full-size/

WHOLE := fig_whole.png fig_whole.pdf fig_whole.csv provenance/fig_whole.json
whole: $(READY)
	mkdir -p runs/whole docs/full-size
	$(GET) --directory runs/whole --configfile studies/whole/config.yaml --config data_dir=$(DATA)
	.venv/bin/snakemake --cores $(CORES) results/fig_whole.pdf results/claims.md --directory runs/whole \
	  --configfile studies/whole/config.yaml --config data_dir=$(DATA)
	cp $(addprefix runs/whole/results/,$(WHOLE)) docs/full-size/
	cp runs/whole/results/claims.csv studies/whole/claims.csv
	cp runs/whole/results/claims.md studies/whole/claims.md

# One depth, at a learning rate; then the tables of all depths that are kept.
DEPTH ?= 3
RATE ?= 32
TABLE_1 := studies/table_1
table-1: $(READY)
	mkdir -p runs/table-1 $(TABLE_1)/mnist
	.venv/bin/snakemake --cores $(CORES) results/training/mnist/depth$(DEPTH).h5 --directory runs/table-1 \
	  --configfile studies/table_1/config.yaml \
	  --config data_dir=$(DATA) 'training={depths: [$(DEPTH)], learning_rates: [$(RATE)]}'
	cp runs/table-1/results/training/mnist/depth$(DEPTH).h5 $(TABLE_1)/mnist/
	$(JOINED) training --input sgd $$(ls -v $(TABLE_1)/mnist/*.h5) --output runs/table-1/training.csv
	$(JOINED) table_generalization --input training runs/table-1/training.csv \
	  --settings '{"rate_for": "depth"}' --output $(TABLE_1)/table_generalization.csv
	$(JOINED) table_epochs --input training runs/table-1/training.csv \
	  --settings '{"thresholds": [1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001]}' \
	  --output $(TABLE_1)/table_epochs.csv
	$(JOINED) fig3 --input training runs/table-1/training.csv --settings '{"rate_for": "depth"}' \
	  --output $(TABLE_1)/fig3.csv
	$(JOINED) claims --input table_generalization $(TABLE_1)/table_generalization.csv \
	  --settings '{"only": ["6-table-1", "6-tradeoff"]}' --output $(TABLE_1)/claims.csv
	rm $(TABLE_1)/claims.html

images: $(TESTED)
	mkdir -p runs/images
	.venv/bin/snakemake --cores $(CORES) results/fig2.pdf results/claims.md --directory runs/images \
	  --configfile studies/images/config.yaml --config data_dir=$(DATA)
	NTKCOND_TEST_IMAGES=$$PWD/runs/images/results .venv/bin/python -m pytest tests/test_reference.py -k images

bench: $(READY)
	.venv/bin/python benchmarks/kernel.py

# `make gpu MINUTES=9` stops earlier; a second call continues.
MINUTES ?= 30
gpu: $(TESTED)
	.venv/bin/python benchmarks/gpu.py --minutes $(MINUTES)

# Needs Graphviz.
dag: $(READY)
	.venv/bin/python docs/dag.py

test: $(TESTED)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/python -m pytest --numprocesses auto --no-loadscope-reorder

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

# Its wheel, first with nothing else installed, then with what its tests need.
TORCH ?= $(shell sed -n 's/^ *"\(torch==[^"]*\)".*/\1/p' pyproject.toml)
OLDEST := $(shell sed -n 's/^ *"\(numpy\|scipy\)>=\([0-9.]*\)".*/\1==\2/p' pyproject.toml)
OTHER := runs/versions/bin/python
ONE_LINE := import torch, ntkcond; print(ntkcond.condition_number(torch.nn.Linear(9, 1), torch.randn(5, 9)))
versions: $(READY)
	rm -rf build/lib build/bdist.* runs/wheel && mkdir -p runs/wheel && .venv/bin/python -m pip wheel --quiet --no-deps --wheel-dir runs/wheel .
	for pins in '$(OLDEST)' 'numpy scipy'; do \
	  .venv/bin/python -m venv --clear runs/versions && \
	  $(OTHER) -m pip install --quiet --disable-pip-version-check $$pins '$(TORCH)' runs/wheel/ntkcond-*.whl && \
	  (cd runs && ../$(OTHER) -c '$(ONE_LINE)') && \
	  $(OTHER) -m pip install --quiet --disable-pip-version-check $$pins pytest-xdist filelock mpmath \
	    pyyaml h5py pandas psutil threadpoolctl && \
	  $(OTHER) -m pip list 2>/dev/null | grep -E '^(numpy|scipy|torch) ' && \
	  $(OTHER) -m pytest --numprocesses auto -p no:cacheprovider tests/ntk tests/arrays tests/networks || exit 1; \
	done

# Exact versions of all packages but torch, with hashes for this system: locked/README.md.
LOCK := .venv/bin/uv pip compile pyproject.toml --override locked/without-torch.txt --no-header \
  --no-annotate --quiet --python-version $(shell $(PYTHON) -c '$(VERSION)')
lock: $(READY)
	$(PIP) uv
	$(LOCK) --upgrade --universal --extra test -o locked/versions.txt
	$(LOCK) -c locked/versions.txt --generate-hashes --extra slurm -o $(LOCKED).txt
	$(LOCK) -c locked/versions.txt --generate-hashes --extra test -o $(LOCKED)-test.txt

clean-venv:
	rm -rf .venv
