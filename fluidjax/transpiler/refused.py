"""The errors of the distributing transpilers that Fluid's scripts know under other builtin names."""

from __future__ import annotations

from ..errors import FluidError, FluidTypeError


class TranspileAssertion(FluidError, AssertionError):
    """Arguments that Fluid refuses with an AssertionError."""


class ArgumentTypeError(FluidTypeError, AttributeError):
    """An argument of a wrong type, on which Fluid failed with an AttributeError."""


class NotTranspiledError(FluidError, AttributeError):
    """A program was asked for before transpile."""
