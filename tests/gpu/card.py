"""The GPU and the CPU beside it. To import this skips a module of tests where there is none; in a
rehearsal the GPU is the CPU.
"""

from __future__ import annotations

import os
from typing import Any

import jax
import numpy as np
import pytest

import fluidjax as fluid

REHEARSAL = bool(os.environ.get("GPU_RUN")) and jax.default_backend() == "cpu"
if jax.default_backend() != "gpu" and not REHEARSAL:
    pytest.skip("JAX sees no GPU", allow_module_level=True)

GPU, CPU = jax.devices()[0], jax.devices("cpu")[0]
PLACE = fluid.CPUPlace() if REHEARSAL else fluid.CUDAPlace(0)


def apart(got: Any, want: Any) -> float:
    """How far numbers lie from what is wanted, as a share of the largest; infinite where shapes,
    dtypes or what is not finite differ.
    """
    got, want = np.asarray(got), np.asarray(want)
    if (got.shape, got.dtype) != (want.shape, want.dtype):
        return np.inf
    if want.dtype.kind in "biuOSU":
        return 0.0 if (got == want).all() else np.inf
    kind = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(kind), want.astype(kind)
    fine = np.isfinite(want)
    if not np.array_equal(got[~fine], want[~fine], equal_nan=True):
        return np.inf
    return float(
        np.abs(got[fine] - want[fine]).max(initial=0) / max(np.abs(want[fine]).max(initial=0), 1e-3)
    )
