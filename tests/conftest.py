"""What every test needs before jax starts: the CPU, unless JAX_PLATFORMS asks for something else."""

from __future__ import annotations

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
