"""A function of arrays as StableHLO, which another process calls without tracing it.

It is what jax.export makes. Its own form of files needs a package more (flatbuffers) and says what
is known here anyway, so only the code is kept, and put into the place of a small function's of the
same arguments and results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp

LAPACK = b"lapack"  # in code that calls it
KEY = "key"  # the dtype of random keys of the implementation in force


class NotExported(Exception):
    """The function cannot leave the process."""


@dataclass(frozen=True)
class Exported:
    """takes, makes: shape and dtype of each argument and result. kept: the arguments that the code
    has. code: StableHLO's bytes.
    """

    takes: tuple[tuple[tuple[int, ...], str], ...]
    makes: tuple[tuple[tuple[int, ...], str], ...]
    kept: tuple[int, ...]
    code: bytes

    @staticmethod
    def of(function: Callable[..., Any], types: Sequence[Any]) -> Exported:
        """Trace a function that returns a list of arrays. Raises NotExported."""
        try:
            made = jax.export.export(jax.jit(function))(*types)
        except (ValueError, NotImplementedError, TypeError) as reason:
            # callbacks, kernels of which no other version is sure to have them
            raise NotExported(str(reason)) from reason
        if (
            made.ordered_effects
            or made.unordered_effects
            or made.nr_devices != 1
            or made.uses_global_constants
        ):
            raise NotExported("it has effects, or is for several devices")
        takes, makes = (
            [(tuple(map(int, a.shape)), _told(a.dtype)) for a in avals]
            for avals in (made.in_avals, made.out_avals)
        )
        return Exported(
            tuple(takes), tuple(makes), tuple(made.module_kept_var_idx), made.mlir_module_serialized
        )

    @property
    def types(self) -> list[jax.ShapeDtypeStruct]:
        """Of the arguments."""
        return [jax.ShapeDtypeStruct(shape, _dtype(told)) for shape, told in self.takes]

    def function(self) -> Callable[..., Any]:
        """It, to be called while something is traced."""

        def small(*_: Any) -> list[Any]:
            # of each kind once
            each = {made: _nothing(*made) for made in dict.fromkeys(self.makes)}
            return [each[made] for made in self.makes]

        made = jax.export.export(jax.jit(small))(*self.types)
        code: dict[str, Any] = {
            "mlir_module_serialized": self.code,
            "module_kept_var_idx": self.kept,
        }
        if LAPACK not in self.code:
            # Of code for a CPU JAX would first import SciPy, for its LAPACK: a quarter of a second.
            code |= {
                "platforms": ("none",),
                "disabled_safety_checks": (jax.export.DisabledSafetyCheck.platform(),),
            }
        call: Callable[..., Any] = replace(made, **code).call
        return call


def _nothing(shape: tuple[int, ...], told: str) -> Any:
    if told == KEY:
        data = jax.random.key_data(jax.random.key(0))
        return jax.random.wrap_key_data(jnp.zeros((*shape, *data.shape), data.dtype))
    return jnp.zeros(shape, told)


def _told(dtype: Any) -> str:
    name = str(dtype)
    if not jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key):
        return name
    if dtype != _dtype(KEY):
        raise NotExported(
            f"it takes or makes random keys of another kind than JAX is set to: {name}"
        )
    return KEY


def _dtype(told: str) -> Any:
    return jax.eval_shape(jax.random.key, 0).dtype if told == KEY else jnp.dtype(told)


class Exporting:
    """A function that is exported when it is first called, while something is traced, and from then
    on runs what was exported.

    made: that; None if it cannot leave the process, and so runs as it is.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._run: Callable[..., Any] | None = None
        self.made: Exported | None = None

    def __call__(self, *given: Any) -> Any:
        if self._run is None:
            try:
                self.made = Exported.of(
                    self._function, [jax.ShapeDtypeStruct(v.shape, v.dtype) for v in given]
                )
                self._run = self.made.function()
            except NotExported:
                self._run = self._function
        return self._run(*given)
