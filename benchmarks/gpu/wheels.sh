#!/usr/bin/env bash
# Fills the ignored folder .whl with wheels for a machine without a network: bash benchmarks/gpu/wheels.sh NAME==VERSION...
# They are for Python 3.12 on x86-64, and are taken by run.sh; name what they need as well. Without names it prints what run.sh needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [[ $# -eq 0 ]]; then
    echo 'needed there: jax with its CUDA plugin, flax, optax, orbax-checkpoint, numpy, protobuf, safetensors, tqdm, scikit-learn, pytest, pytest-xdist'
    exit
fi
platforms=()
for glibc in 2_39 2_35 2_34 2_31 2_28 2_27 2_24 2_17; do platforms+=(--platform "manylinux_${glibc}_x86_64"); done
"${PYTHON:-python3}" -m pip download --no-deps --only-binary=:all: --python-version 3.12 --implementation cp "${platforms[@]}" \
    --platform manylinux2014_x86_64 --platform manylinux1_x86_64 -d .whl "$@"
