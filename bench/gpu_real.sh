#!/bin/sh
# Look at a machine with a real GPU, as a worker does: what its drivers answer, what is made of that, how long it takes.
# It needs no container engine and changes nothing. What it finds lies in a folder, and the answers are test data.
# Usage: sh bench/gpu_real.sh [FOLDER], with PYTHON=... for another Python than that of `make setup`.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-${OUT:-gpu-real}}
mkdir -p "$folder"
"${PYTHON:-.venv/bin/python}" -m bench.gpu_real "$folder" | tee "$folder/seen.txt"
