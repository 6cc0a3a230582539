"""What every test needs before jax starts: the CPU, unless JAX_PLATFORMS asks for something else, as four devices."""

from __future__ import annotations

import os

import jax

jax.config.update("jax_platforms", os.environ.setdefault("JAX_PLATFORMS", "cpu"))
jax.config.update("jax_num_cpu_devices", 4)
