"""Errors of the distributing transpilers that Fluid's scripts know as other builtin exceptions."""

from __future__ import annotations

from ..errors import FluidError, FluidTypeError


class TranspileAssertion(FluidError, AssertionError):
    """Arguments that Fluid refuses with an AssertionError."""


class ArgumentTypeError(FluidTypeError, AttributeError):
    """An argument of a wrong type, for which Fluid raises an AttributeError."""


class NotTranspiledError(FluidError, AttributeError):
    """A program was requested before transpile."""
