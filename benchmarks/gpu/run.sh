#!/usr/bin/env bash
# Tests and measures on a machine with an NVIDIA GPU, in at most BUDGET seconds: bash benchmarks/gpu/run.sh
#
#   BUDGET=540        seconds in all; what matters most comes first
#   OUT=bench-output  folder of results.jsonl (a line a finding, written as it comes) and of logs
#   ONLY=tests,train  groups or cases to run: roofline, dispatch, tests, train, pieces, inference, curves, scripts; all by default
#   TESTS="ops or nets"  of the tests those whose names fit (pytest's -k)
#   PIECES=dropout,gelu  of the single ops those whose names have one of these in them
#   PYTHON=python3    the interpreter; it needs jax with CUDA, flax, optax, pytest, pytest-xdist
#   WHEELS=.whl       a folder of wheels of what else is missing there (benchmarks/gpu/wheels.sh fills it)
#
# JAX_PLATFORMS=cpu rehearses it: the CPU in the GPU's place, and everything tiny.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PYTHON=${PYTHON:-python3}
WHEELS=${WHEELS:-.whl}
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1
if compgen -G "$WHEELS/*.whl" >/dev/null; then
    site=$(mktemp -d)
    "$PYTHON" -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target "$site" "$WHEELS"/*.whl
    export PYTHONPATH="$PYTHONPATH:$site"
fi
exec "$PYTHON" -m benchmarks.gpu
