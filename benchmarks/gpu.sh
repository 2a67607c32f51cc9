#!/usr/bin/env bash
# What a CUDA GPU computes, how fast, and whether it agrees with the CPU: for a bare machine with one
# GPU, no network, and ten minutes.
#
#   benchmarks/gpu.sh prepare [DATA]   where there is a network: what such a machine lacks, and MNIST's
#                                      files from the folder DATA, into build/gpu. FOR=3.12: its Python
#   benchmarks/gpu.sh [STEP ...]       there, beside build/gpu: all steps, or these. A python3 with torch,
#                                      NumPy, SciPy, h5py, pandas, scikit-learn and pytest is needed
#
# PYTHON: another one. OUT: folder of results. WORK: of all else, which the next call resumes from.
# LIMIT: seconds, 540; nothing starts after, and what runs is stopped. DATA: another folder of raw files.
# SMALL=1: small sizes, as without a GPU.
#
# Each step is a process with a time of its own. $OUT/gpu.csv has what it measured, also if it failed or
# was cut off, and that. Exit status 1 if any step failed, was cut off or not begun, or if a row differs.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
PYTHON=${PYTHON:-python3} LIMIT=${LIMIT:-540} WHEELS=build/gpu/wheels
export WORK=${WORK:-$PWD/benchmarks/results/gpu} PYTHONUNBUFFERED=1
OUT=${OUT:-$WORK}

# What is installed there but is in no usual environment with torch: snakemake and what it needs, and
# what tests import. pulp is left out (16 MB): Snakemake then schedules greedily.
LACKING='array-api-compat soundfile cffi pycparser kaldi-native-fbank pypdf jsonschema
  jsonschema-specifications referencing rpds-py snakemake conda-inject docutils dpath smart-open
  snakemake-interface-common snakemake-interface-executor-plugins snakemake-interface-logger-plugins
  snakemake-interface-report-plugins snakemake-interface-scheduler-plugins
  snakemake-interface-storage-plugins configargparse argparse-dataclass humanfriendly sqlmodel tenacity
  throttler yte gitpython gitdb smmap immutables nbformat fastjsonschema jupyter-core platformdirs
  traitlets pydantic pydantic-core sqlalchemy annotated-types typing-inspection'

prepare() {
    local data=${1:-${DATA:-data}} names flags
    names=$(sed 's/ *;.*//' locked/versions.txt | grep -E "^($(echo $LACKING | tr ' ' '|'))==") || return
    rm -rf build/gpu && mkdir -p $WHEELS build/gpu/data/MNIST || return
    flags=$(for n in 2_28 2_27 2_17; do echo --platform manylinux_${n}_x86_64; done)
    "$PYTHON" -m pip download -q --no-deps --only-binary=:all: --implementation cp $flags \
        --platform manylinux2014_x86_64 --platform manylinux1_x86_64 \
        --python-version "${FOR:-3.12}" -d $WHEELS $names || return
    "$PYTHON" -m pip wheel -q --no-deps -w $WHEELS connection-pool==0.0.3 || return  # has no wheel
    [ -d "$data/MNIST/raw" ] && cp -r "$data/MNIST/raw" build/gpu/data/MNIST/  # files, not a link
    du -sh build/gpu/*
    echo "$(ls $WHEELS | wc -l) wheels. There: bash benchmarks/gpu.sh"
}

# A row of the shell: STEP WORDS VERDICT.
note() {
    local table=$WORK/$1.csv
    [ -f "$table" ] || echo "$HEADER" >"$table"
    echo "$1,all,,,,,,$3,,$(tr -d '",\n' <<<"$2")" >>"$table"
}

# STEP SECONDS: at most so long, and within the limit.
step() {
    local left=$((LIMIT - SECONDS)) status=0
    rm -f "$WORK/$1.csv"
    echo "== $1 (at $SECONDS s of $LIMIT)"
    if [ $left -lt 20 ]; then
        note "$1" "not begun: $left s were left" "not begun"
    else
        timeout -s INT -k 15 $(($2 < left ? $2 : left)) "$PYTHON" benchmarks/gpu.py "$1" \
            >"$WORK/$1.log" 2>&1 || status=$?
        tail -n 40 "$WORK/$1.log"
        case $status in
            0 | 3) ;;  # 3: a row differs, and says so
            124 | 137) note "$1" "stopped after $2 s or at the limit" "cut off" ;;
            *) note "$1" "$(tail -n 1 "$WORK/$1.log")" failed ;;
        esac
    fi
    awk -v day="$(date +%F)" 'NR == 1 { print $0 ",command,when" } FNR > 1 { print $0 ",benchmarks/gpu.sh," day }' \
        $(for name in $ALL; do ls "$WORK/$name.csv" 2>/dev/null; done) >"$OUT/gpu.csv"
    results=$WORK/studies/$1/results  # to be laid: below studies/paper/jobs, docs/gpu.md
    [ ! -d "$results/training" ] || tar czf "$OUT/$1.tgz" -C "$results" --exclude='*.checkpoint.h5' training
}

if [ "${1:-}" = prepare ]; then
    shift
    prepare "$@"
    exit
fi
HEADER=step,case,seconds,gflops,share,difference,tolerance,verdict,gpu_gb,result
ALL='machine ceilings kernels spectra pairs training tests whole figure_3 table_1'
MOST='40 40 100 60 60 90 90 90 3600 3600'  # seconds of each
for name in "$@"; do
    case " $ALL " in *" $name "*) ;; *) echo "no step $name: prepare, or some of $ALL"; exit 2 ;; esac
done
mkdir -p "$OUT" "$WORK"
nvidia-smi 2>/dev/null | head -n 15
export PYTHONPATH=$PWD/src:${PYTHONPATH:-}
"$PYTHON" -c 'import torch; torch.cuda.is_available() or print("no GPU: CPU at small size")'
if ls $WHEELS/*.whl >/dev/null 2>&1 && ! "$PYTHON" -c 'import array_api_compat, snakemake' 2>/dev/null; then
    SITE=$(mktemp -d)
    "$PYTHON" -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target "$SITE" \
        $WHEELS/*.whl || exit
    export PYTHONPATH=$PYTHONPATH:$SITE
fi
set -- ${*:-$ALL}
for name in $ALL; do
    most=${MOST%% *} MOST=${MOST#* }
    case " $* " in *" $name "*) step "$name" "$most" ;; esac
done
cat "$WORK"/*.log >"$OUT/gpu.log.txt"
echo "== $OUT/gpu.csv, after $SECONDS s"
! grep -E ',(differs|failed|cut off|not begun),' "$OUT/gpu.csv"
