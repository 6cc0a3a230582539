"""What every test needs before jax starts: the CPU, unless JAX_PLATFORMS asks for something else, as four devices.

And which examples property tests run. A change is judged by the same ones wherever its tests run, so that none fails by
chance; new ones are searched for apart (`make search`), and what a search finds becomes an `@example` or a test of its own.
"""

from __future__ import annotations

import os

import jax
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

jax.config.update("jax_platforms", os.environ.setdefault("JAX_PLATFORMS", "cpu"))
jax.config.update("jax_num_cpu_devices", 4)

ANY_SPEED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None, print_blob=True)
settings.register_profile("fixed", ANY_SPEED, derandomize=True, max_examples=100)
settings.register_profile("search", ANY_SPEED, derandomize=False, max_examples=400)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fixed"))

# Hypothesis also draws constants from the source of whatever has been imported so far: that depends on which tests ran before.
_none, _found = providers._local_constants, providers._get_local_constants
providers._get_local_constants = lambda: _none if settings.default.derandomize else _found()
