"""Paddle's high-level API over static programs: Model, summary, flops."""

from __future__ import annotations

from .counts import flops as flops
from .model import Model as Model
from .summary import summary as summary

__all__ = ["Model", "flops", "summary"]
