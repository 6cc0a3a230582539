"""The place of programs that are given none."""

from __future__ import annotations

import warnings

import jax
import pytest

import fluidjax as fluid
from fluidjax.devices import place


@pytest.mark.parametrize("platform", ["cpu", "tpu"])
def test_without_a_gpu_programs_run_on_the_cpu_and_say_so_if_jax_would_not(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "gpus", tuple)
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert fluid.Executor().place == fluid.CPUPlace()
        fluid.Executor(fluid.CPUPlace())
    asked = f"JAX's default device is a {platform}, for which there is no place"
    assert [str(w.message).startswith(asked) for w in found] == [True] * (platform != "cpu")
    assert all(w.filename == __file__ for w in found)
