"""FLAGS_* settings, read once from the environment and typed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import FluidTypeError, FluidValueError, near

DEFAULTS: dict[str, bool | int | float | str] = {
    "FLAGS_check_nan_inf": False,
    "FLAGS_benchmark": False,
    "FLAGS_use_mkldnn": False,
    "FLAGS_cudnn_deterministic": False,
    "FLAGS_eager_delete_tensor_gb": 0.0,
    "FLAGS_fraction_of_gpu_memory_to_use": 0.92,
    "FLAGS_selected_gpus": "",
    "FLAGS_seed_doc_split": False,
    "FLAGS_xla_cpu_tuning": True,
    "FLAGS_recompile_warning": 16,
    "FLAGS_max_executables": 512,
    "FLAGS_rpc_deadline": 180000,
    "FLAGS_compilation_cache": True,
    "FLAGS_compilation_cache_dir": "",
    "FLAGS_compilation_cache_mb": 1024,
    "FLAGS_progress": "auto",
}
# JAX's devices, and a launcher's choice of them, are fixed when a process starts
ENVIRONMENT = "FLAGS_selected_gpus"
_values: dict[str, bool | int | float | str] = {}


def _typed(name: str, value: Any) -> bool | int | float | str:
    """`value` as the type of the flag's default; a text such as "1" or "true" is read."""
    kind = type(DEFAULTS[name])
    if kind is bool and isinstance(value, str):
        text = value.strip().lower()
        if text not in ("0", "1", "true", "false"):
            raise FluidValueError(f"{name} is a boolean flag: 0, 1, true or false, not {value!r}")
        return text in ("1", "true")
    try:
        return kind(value)
    except (TypeError, ValueError):
        raise FluidValueError(f"{name} wants {kind.__name__}, not {value!r}") from None


def _known(name: object) -> str:
    if not isinstance(name, str):
        raise FluidTypeError(f"a flag's name is a string, not {type(name).__name__}")
    if name not in DEFAULTS:
        raise FluidValueError(f"unknown flag {name!r}{near(name, DEFAULTS)}")
    return name


def flag(name: str) -> Any:
    """The current value of one flag."""
    if name not in _values:
        text = os.environ.get(_known(name))
        _values[name] = DEFAULTS[name] if text is None else _typed(name, text)
    return _values[name]


def get_flags(flags: str | Iterable[str]) -> dict[str, Any]:
    """``{name: value}`` for one flag or several."""
    return {name: flag(_known(name)) for name in ([flags] if isinstance(flags, str) else flags)}


def set_flags(flags: Mapping[str, Any]) -> None:
    """Set flags from a dict. If one is wrong, none is set. FLAGS_selected_gpus is refused, as in
    Fluid.
    """
    if not isinstance(flags, Mapping):
        raise FluidTypeError(
            f"set_flags takes a dict of flag names and values, not {type(flags).__name__}"
        )
    if ENVIRONMENT in flags:
        raise FluidValueError(
            f"{ENVIRONMENT} is read from the environment alone; set it there before the script"
            " starts"
        )
    _values.update({_known(name): _typed(name, value) for name, value in flags.items()})
